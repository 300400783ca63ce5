"""Real worker processes on tiny suites: what is measured, what resumes, and whom a death is blamed on."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import psutil
import pytest

from grape_bench import suite as suites
from grape_bench.environment import Environment
from grape_bench.errors import UserError
from grape_bench.executors import Died
from grape_bench.executors._processes import Processes, _Worker
from grape_bench.record import AccuracyReading, MemoryReading, Record, TimeReading
from grape_bench.runner import RunOptions, plan, run, run_cell
from grape_bench.store import Store
from grape_bench.suite import Suite
from grape_bench.worker import Finished

HEAD = "title: Tiny\nbaseline: none\nprocesses: 1\n"
COST = """
cost:
  - scope: attention
    lengths: [16]
    heads: [2]
    head_dim: [8]
    metrics: [forward_ms]
"""
TRAINING = """
accuracy:
  - task: registers(registers=2, writes=2, pairs=2)
    train_length: 16
    test_lengths: [16, 24]
    model: {{width: 16, layers: 2, heads: 2}}
    training: {{steps: {steps}, batch: 4, warmup: 2, test_examples: 10}}
"""


def parsed(text: str) -> Suite:
    return suites.parse(text, "tiny.yaml")


def tiny(encodings: str = "none, rope", *, more: str = "", steps: int = 6, cost: bool = True) -> str:
    return f"{HEAD}encodings: [{encodings}]\n{more}{COST if cost else ''}{TRAINING.format(steps=steps)}"


def options(folder: Path, **changes: Any) -> RunOptions:
    return RunOptions(results=folder, device="cpu", **changes)


def records(folder: Path) -> list[Record]:
    return Store(folder).records("tiny")


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.glob("*/*.jsonl")}


def grandchildren(of: psutil.Process) -> list[psutil.Process]:
    """The workers of a runner are the children of its fork server."""
    found = []
    for child in of.children():
        try:
            found += child.children()
        except psutil.NoSuchProcess:
            continue
    return found


def wait_for(condition: Callable[[], Any], seconds: float = 30.0) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if found := condition():
                return found
        except psutil.NoSuchProcess:
            continue
        time.sleep(0.005)
    raise AssertionError("it did not happen in time")


def started(folder: Path) -> bool:
    """The run has looked at the machine and written its first line."""
    return any(folder.glob("*/*.jsonl"))


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Suite, Any]:
    """A whole suite with one of each kind of end, run once."""
    folder = tmp_path_factory.mktemp("results")
    text = tiny("none, rope, \"alibi(form='causal')\", fourier(periods=-1)")
    suite = parsed(text.replace("metrics: [forward_ms]", "metrics: [forward_ms, peak_mib, decode_ms]"))
    return folder, suite, run(suite, options(folder))


def test_every_cell_has_one_record_of_its_own(measured: tuple[Path, Suite, Any]) -> None:
    folder, suite, outcome = measured
    cells = suites.expand(suite)
    assert len(cells) == 3 * 4 + 4
    members = [one for one in records(folder) if one.role == "member"]
    assert sorted(one.id for one in members) == sorted(cell.id for cell in cells)
    assert (outcome.measured, outcome.skipped, outcome.failed, outcome.known) == (8, 4, 4, 0)
    assert not outcome.stopped


def test_readings_are_of_their_kind(measured: tuple[Path, Suite, Any]) -> None:
    folder, _, _ = measured
    kinds = {"peak_mib": MemoryReading, "accuracy": AccuracyReading}
    for one in records(folder):
        if one.status == "ok":
            assert isinstance(one.reading, kinds.get(one.cell.metric, TimeReading))
            assert one.fault is one.message is None
            assert one.seconds is not None
        else:
            assert one.reading is None


def test_an_encoding_that_cannot_live_here_is_skipped_with_its_sentence(measured: tuple[Path, Suite, Any]) -> None:
    folder, _, _ = measured
    skipped = [one for one in records(folder) if one.cell.encoding.startswith("alibi")]
    assert len(skipped) == 4
    for one in skipped:
        assert (one.status, one.fault) == ("skipped", None)
        assert one.message is not None
        assert "bidirectional" in one.message


def test_an_encoding_that_raises_fails_and_the_rest_goes_on(measured: tuple[Path, Suite, Any]) -> None:
    folder, _, _ = measured
    failed = [one for one in records(folder) if one.cell.encoding.startswith("fourier")]
    assert len(failed) == 4
    for one in failed:
        assert (one.status, one.fault) == ("failed", "error")
        assert one.message is not None
        assert "RuntimeError" in one.message
        assert "negative" in one.message
    assert {one.status for one in records(folder) if one.cell.encoding in ("none", "rope")} == {"ok"}


def test_a_timed_block_is_one_measurement_with_a_control(measured: tuple[Path, Suite, Any]) -> None:
    folder, _, _ = measured
    for metric in ("forward_ms", "decode_ms"):
        block = [one for one in records(folder) if one.cell.metric == metric]
        assert len({one.block_run for one in block}) == 1
        assert [one.cell.encoding for one in block if one.role == "control"] == ["none"]
        lengths = {len(one.reading.samples_ms) for one in block if isinstance(one.reading, TimeReading)}
        assert len(lengths) == 1, "sample r of one is of the same round as sample r of another"


def test_each_peak_is_of_a_process_of_its_own(measured: tuple[Path, Suite, Any]) -> None:
    folder, _, _ = measured
    peaks = [one for one in records(folder) if one.cell.metric == "peak_mib"]
    assert len({one.block_run for one in peaks}) == len(peaks) == 4


def test_records_know_the_machine_and_their_run(measured: tuple[Path, Suite, Any]) -> None:
    folder, _, _ = measured
    (path,) = files(folder)
    found = records(folder)
    assert {one.environment.machine for one in found} == {path.parent.name}
    assert {one.suite for one in found} == {"tiny"}
    assert len({one.run for one in found}) == 1
    assert {one.environment.threads for one in found} == {1}


def test_a_second_run_measures_nothing(measured: tuple[Path, Suite, Any]) -> None:
    folder, suite, _ = measured
    before = files(folder)
    outcome = run(suite, options(folder))
    assert (outcome.measured, outcome.skipped, outcome.known, outcome.failed) == (0, 0, 16, 4)
    assert files(folder) == before, "readers change nothing"


def test_a_plan_measures_nothing_and_counts_what_is_left(measured: tuple[Path, Suite, Any]) -> None:
    folder, suite, _ = measured
    before = files(folder)
    assert "tiny: 16 cells in 10 blocks; to measure: 0 cells in 0 blocks" in plan(suite, options(folder))
    assert "to measure: 16 cells in 10 blocks" in plan(suite, options(folder, fresh=True))
    assert files(folder) == before


def test_a_new_encoding_is_measured_beside_the_baseline(measured: tuple[Path, Suite, Any], tmp_path: Path) -> None:
    folder, _, _ = measured
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    grown = parsed(tiny("none, rope, clamp"))
    outcome = run(grown, options(tmp_path))
    new = records(tmp_path)[len(records(folder)) :]
    assert Counter((one.cell.encoding, one.cell.metric, one.role) for one in new) == {
        ("none", "forward_ms", "member"): 1,
        ("none", "forward_ms", "control"): 1,
        ("clamp", "forward_ms", "member"): 1,
        ("clamp", "accuracy", "member"): 1,
    }
    assert outcome.measured == 3


def test_failed_cells_are_tried_again_when_asked(measured: tuple[Path, Suite, Any], tmp_path: Path) -> None:
    folder, suite, _ = measured
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    outcome = run(suite, options(tmp_path, retry_failed=True, only=("metric=accuracy",)))
    new = records(tmp_path)[len(records(folder)) :]
    assert [one.cell.encoding for one in new] == ["fourier(periods=-1)"]
    assert outcome.failed == 1


def test_one_cell_is_measured_in_this_process_and_not_recorded(measured: tuple[Path, Suite, Any]) -> None:
    folder, suite, _ = measured
    before = files(folder)
    cell = next(one for one in suites.expand(suite) if one.kind == "accuracy" and one.encoding == "rope")
    assert '"headline": "recall"' in run_cell(suite, options(folder), cell.id[:12])
    assert files(folder) == before
    with pytest.raises(UserError, match="no cell has it"):
        run_cell(suite, options(folder), "zzzz")


def test_a_worker_that_is_killed_costs_the_member_it_worked_on(tmp_path: Path) -> None:
    suite, me = parsed(tiny("none, rope, clamp", steps=4)), psutil.Process()

    def kill_first() -> None:
        wait_for(lambda: started(tmp_path))
        wait_for(lambda: grandchildren(me))[0].send_signal(signal.SIGKILL)

    killer = threading.Thread(target=kill_first)
    killer.start()
    outcome = run(suite, options(tmp_path))
    killer.join()
    found = records(tmp_path)
    (killed,) = [one for one in found if one.status != "ok"]
    assert (killed.status, killed.fault, killed.cell.metric) == ("failed", "killed", "forward_ms")
    assert killed.message is not None
    assert "SIGKILL" in killed.message
    rest = [one for one in found if one.status == "ok" and one.role == "member"]
    assert {one.id for one in rest} == {cell.id for cell in suites.expand(suite)} - {killed.id}
    assert len({one.block_run for one in rest if one.cell.metric == "forward_ms"}) == 1, "still side by side"
    assert (outcome.measured, outcome.failed) == (5, 1)
    again = run(suite, options(tmp_path))
    assert (again.measured, again.failed) == (0, 1), "it is not tried again unless asked"


def test_a_training_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    suite = parsed(tiny("none", more="block_minutes: 0.005\n", steps=1_000_000, cost=False))
    outcome = run(suite, options(tmp_path))
    (record,) = records(tmp_path)
    assert (record.status, record.fault) == ("failed", "timeout")
    assert record.message == "stopped after 0.005 minutes"
    assert outcome.failed == 1
    assert not grandchildren(psutil.Process())
    again = run(suite, options(tmp_path))
    assert (again.measured, again.failed) == (0, 1)


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A runner in a process of its own, on the suite of `tmp_path`."""
    script = (
        "from pathlib import Path\n"
        "from grape_bench import suite\n"
        "from grape_bench.runner import RunOptions, run\n"
        f"tiny = suite.load(Path({str(tmp_path / 'tiny.yaml')!r}))\n"
        f"run(tiny, RunOptions(results=Path({str(tmp_path)!r}), device='cpu'))\n"
    )
    (tmp_path / "tiny.yaml").write_text(tiny(more="seeds: [0, 1, 2, 3]\n", steps=30))
    # What it says goes nowhere: the end of a pipe would outlive it in its children.
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([sys.executable, "-c", script], **silent)
    yield process
    process.kill()
    process.wait()


def test_after_a_kill_the_next_run_does_only_what_is_missing(runner: subprocess.Popen[bytes], tmp_path: Path) -> None:
    suite = suites.load(tmp_path / "tiny.yaml")
    cells = {cell.id for cell in suites.expand(suite)}
    assert len(cells) == 2 + 8
    (path,) = wait_for(lambda: list(tmp_path.glob("*/tiny.jsonl")))
    wait_for(lambda: path.read_bytes().count(b'"kind":"accuracy","metric"') >= 2)
    workers = grandchildren(psutil.Process(runner.pid))
    os.kill(runner.pid, signal.SIGKILL)
    runner.wait()
    before = records(tmp_path)
    done = {one.id for one in before}
    assert 4 <= len(done) < len(cells), "in the middle"
    _, alive = psutil.wait_procs(workers, timeout=5)
    assert not alive, "workers end with their runner"

    outcome = run(suite, options(tmp_path))
    after = [one for one in records(tmp_path) if one.role == "member"]
    assert Counter(one.id for one in after) == dict.fromkeys(cells, 1)
    assert outcome.measured == len(cells) - len(done)
    assert outcome.known == len(done)
    assert len({one.reading.data_sha for one in after if isinstance(one.reading, AccuracyReading)}) == 4, "one a seed"


class Process:
    """The end of a process, as an executor sees it."""

    def __init__(self, exitcode: int):
        self.exitcode = exitcode

    def join(self) -> None:
        return None


def ended(tmp_path: Path, exitcode: int, sent: list[Any]) -> list[list[Any]]:
    """What an executor tells of a worker that sent this and ended so, look by look."""
    executor = Processes()
    here, there = Pipe(duplex=False)
    executor._workers[1] = _Worker(Process(exitcode), here, tmp_path / "none.log", 0)  # type: ignore[arg-type]
    for one in sent:
        there.send(one)
    there.close()
    looks = [[event for _, event in executor.wait(0.1)] for _ in range(len(sent) + 2)]
    executor.close()
    return looks


def test_how_a_worker_ends_after_its_block_is_nobodys_business(tmp_path: Path, environment: Environment) -> None:
    """A library may crash when its process closes; the block is measured nevertheless."""
    finished = Finished((), environment, 1.0)
    assert ended(tmp_path, -signal.SIGSEGV, [finished]) == [[finished], [], []]


def test_a_worker_that_leaves_without_a_word_has_died(tmp_path: Path) -> None:
    """Also with exit code 0, as after `sys.exit()`; else the runner would wait for it until its limit."""
    for exitcode in (0, 3, -signal.SIGKILL):
        (event,), *later = ended(tmp_path, exitcode, [])
        assert isinstance(event, Died)
        assert event.killed is (exitcode == -signal.SIGKILL)
        assert later == [[]]


def test_a_member_refused_in_one_process_is_not_tried_in_the_next(tmp_path: Path) -> None:
    head = HEAD.replace("processes: 1", "processes: 3")
    suite = parsed(f"{head}encodings: [none, rope, alibi(form='causal')]\n{COST}")
    outcome = run(suite, options(tmp_path))
    assert (outcome.measured, outcome.skipped, outcome.failed) == (2, 1, 0)
    found = Counter((one.cell.encoding, one.status) for one in records(tmp_path) if one.role == "member")
    assert found == {("none", "ok"): 3, ("rope", "ok"): 3, ("alibi(form='causal')", "skipped"): 1}
    assert run(suite, options(tmp_path)).measured == 0


def test_a_skip_that_the_suite_does_not_expect_is_named(tmp_path: Path) -> None:
    """One that it lists passes; a suite that lists none expects nothing and refuses nothing."""
    listed = "skips:\n  - {only: [metric=decode_ms, encoding=dynamic_ntk], reason: its base changes}\n"
    text = tiny("none, dynamic_ntk, longrope", more=listed).replace("[forward_ms]", "[decode_ms]")
    outcome = run(parsed(text), options(tmp_path / "listed", only=("metric=decode_ms",)))
    assert (outcome.measured, outcome.skipped) == (1, 2)
    assert outcome.unexpected == ("longrope: decode_ms",)
    again = run(parsed(text.replace(listed, "")), options(tmp_path / "free", only=("metric=decode_ms",)))
    assert (again.skipped, again.unexpected) == (2, ())
