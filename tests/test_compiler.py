"""Where torch.compile cannot work, a sentence says so."""

from pathlib import Path

import pytest

from grape_bench.compiler import require_compiler
from grape_bench.errors import Unsupported


def test_no_compiler_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/nowhere/g++")
    with pytest.raises(Unsupported, match=r"C\+\+ compiler"):
        require_compiler("cpu", Path("/opt/torch"))


def test_a_space_in_the_path_of_torch_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/bin/true")
    require_compiler("cpu", Path("/opt/torch"))
    with pytest.raises(Unsupported, match="a space in its name"):
        require_compiler("cpu", Path("/opt/my environment/torch"))


def test_a_gpu_needs_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/nowhere/g++")
    require_compiler("cuda", Path("/opt/my environment/torch"))
