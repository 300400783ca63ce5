"""What is said of Ray where it is not, and of an address where no cluster is asked for; tests/ray has the rest."""

import sys
from pathlib import Path

import pytest

from grape_bench.cli import main

SMOKE = str(Path(__file__).resolve().parents[2] / "suites" / "smoke.yaml")


def test_without_ray_it_is_said_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "grape_bench.executors.ray", raising=False)
    assert main([SMOKE, "--executor", "ray", "--results", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "--executor ray needs ray, which is missing" in said
    assert "pip install 'grape-bench[ray]'" in said
    assert "Traceback" not in said


def test_an_address_asks_for_an_executor_that_has_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main([SMOKE, "--address", "10.0.0.1:6379", "--results", str(tmp_path)]) == 2
    assert "executor local has no cluster; add --executor ray" in capsys.readouterr().err
