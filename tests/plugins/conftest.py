"""A folder with a user's files, and nothing announced before or after."""

import sys
from pathlib import Path

import pytest

from grape_bench.origin import VARIABLE

sys.path.insert(0, str(Path(__file__).parent))  # the module that its tests share


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    from outside import write

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, "")  # and as it was, after the test
    write(tmp_path)
    return tmp_path
