"""Plug-ins from outside in one run of a process of its own: gated, measured and reported like ours."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from outside import install, write

from grape_bench.origin import VARIABLE
from grape_bench.record import Record
from grape_bench.store import Store

HOME = Path(__file__).resolve().parents[2]


class Run:
    """One run in a process of its own, with workers."""

    def __init__(self, folder: Path, *words: str):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HOME), str(folder)]), "OMP_NUM_THREADS": "1"}
        environment.pop(VARIABLE, None)
        command = [sys.executable, "-m", "grape_bench", "tiny.yaml", "--device", "cpu", *words]
        self.done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
        records = [one for one in Store(folder / "results").records("tiny") if one.role == "member"]
        self.records = {(one.cell.metric, one.cell.backend, one.cell.encoding): one for one in records}
        self.report = (folder / "reports" / "tiny.md").read_text()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Good ones and bad ones in one run, to load torch once."""
    folder = tmp_path_factory.mktemp("run")
    write(folder, more="nearby, ")
    install(folder)
    words = [f"--encoding=mine.py:{name}" for name in ("Mine", "Detached", "Liar")]
    return Run(folder, *words, "--backend=kernel.py:Kernel", "--backend=kernel.py:Wrong")


def test_a_file_is_measured_into_a_report(run: Run) -> None:
    assert run.records["forward_ms", "sdpa", "Mine"].status == "ok"
    assert any(line.startswith("| Mine ") for line in run.report.splitlines())


def test_what_runs_is_said_once(run: Run) -> None:
    assert run.done.stderr.count("runs the code of mine.py, for its class Mine\n") == 1
    assert "Traceback" not in run.done.stderr


def test_an_entry_point_is_measured_under_its_own_name(run: Run) -> None:
    assert run.records["forward_ms", "sdpa", "nearby"].status == "ok"


@pytest.mark.parametrize(("name", "reason"), [("Detached", "gradient of bonus"), ("Liar", "relative")])
def test_an_encoding_is_gated_before_it_is_timed(run: Run, name: str, reason: str) -> None:
    assert run.done.returncode == 1
    assert refusal(run.records["forward_ms", "sdpa", name]) == ("failed", "gate")
    assert reason in str(run.records["forward_ms", "sdpa", name].message)


def test_a_kernel_is_gated_before_it_is_timed(run: Run) -> None:
    assert (
        run.records["forward_ms", "Kernel", "rope"].status == run.records["peak_mib", "Kernel", "rope"].status == "ok"
    )
    assert refusal(run.records["forward_ms", "Wrong", "rope"]) == ("failed", "gate")
    assert refusal(run.records["peak_mib", "Wrong", "rope"]) == ("failed", "gate")


def refusal(record: Record) -> tuple[str, str | None]:
    return record.status, record.fault
