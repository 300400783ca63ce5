"""Real worker processes on tiny suites: what is measured, what is refused, and what a second run does."""

import os
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from grape_bench import suite as suites
from grape_bench.cell import AccuracyCell
from grape_bench.errors import UserError
from grape_bench.origin import VARIABLE, announce, locate
from grape_bench.record import AccuracyReading, MemoryReading, Record, TimeReading
from grape_bench.runner import RunOptions, plan, run, run_cell
from grape_bench.store import Store
from grape_bench.suite import Suite
from grape_bench.tuning import candidates

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
BROKEN = '''
from grape_bench.encodings import Encoding


class Broken(Encoding):
    """Turns nothing."""

    def __init__(self, site):
        super().__init__()

    def rotate(self, q, k, features, at):
        raise ZeroDivisionError("no planes are left")
'''


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


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, tuple[Path, Suite, Any]]:
    """A whole suite with one of each kind of end, run once."""
    folder, plugin = tmp_path_factory.mktemp("results"), tmp_path_factory.mktemp("plugins") / "broken.py"
    plugin.write_text(BROKEN, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "")  # and as it was, after this
        announce([locate("encodings", f"{plugin}:Broken")])
        text = tiny("none, rope, \"alibi(form='causal')\", Broken")
        suite = parsed(text.replace("metrics: [forward_ms]", "metrics: [forward_ms, peak_mib, decode_ms]"))
        return os.environ[VARIABLE], (folder, suite, run(suite, options(folder)))


@pytest.fixture
def measured(once: tuple[str, tuple[Path, Suite, Any]], monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Suite, Any]:
    plugins, done = once
    monkeypatch.setenv(VARIABLE, plugins)
    return done


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
    failed = [one for one in records(folder) if one.cell.encoding == "Broken"]
    assert len(failed) == 4
    for one in failed:
        assert (one.status, one.fault) == ("failed", "error")
        assert one.message == "ZeroDivisionError: no planes are left (rotate, line 12)"
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
    assert [one.cell.encoding for one in new] == ["Broken"]
    assert outcome.failed == 1


def test_one_cell_is_measured_in_this_process_and_not_recorded(measured: tuple[Path, Suite, Any]) -> None:
    folder, suite, _ = measured
    before = files(folder)
    cell = next(one for one in suites.expand(suite) if one.kind == "accuracy" and one.encoding == "rope")
    assert '"headline": "recall"' in run_cell(suite, options(folder), cell.id[:12])
    assert files(folder) == before
    with pytest.raises(UserError, match="no cell has it"):
        run_cell(suite, options(folder), "zzzz")


def test_a_tuned_cell_is_measured_alone_at_the_rate_that_is_on_record(
    make_record: Callable[..., Record], tmp_path: Path
) -> None:
    suite = parsed(
        tiny("none", cost=False, more="seeds: [0]\n").replace(
            "    training:", "    tune: {lr: [0.001, 0.002]}\n    training:"
        )
    )
    (cell,) = suites.expand(suite)
    assert isinstance(cell, AccuracyCell)
    assert "none of the learning rates 0.001, 0.002 was trained" in run_cell(suite, options(tmp_path), cell.id)
    first, second = candidates(cell)
    with Store(tmp_path).writing("machine", "tiny") as writer:
        writer.append([make_record(first, status="failed", fault="nan"), make_record(second)])
    assert '"lr": 0.002' in run_cell(suite, options(tmp_path), cell.id)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_here_is_said(tmp_path: Path) -> None:
    suite = parsed(tiny("none", cost=False))
    (cell,) = suites.expand(suite)
    elsewhere = replace(options(tmp_path), device="cuda")
    with pytest.raises(UserError, match="torch finds no CUDA device"):
        run_cell(suite, elsewhere, cell.id)
    with pytest.raises(UserError, match="torch finds no CUDA device"):
        plan(suite, elsewhere)


def test_a_training_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    suite = parsed(tiny("none", more="block_minutes: 0.005\n", steps=1_000_000, cost=False))
    outcome = run(suite, options(tmp_path))
    (record,) = records(tmp_path)
    assert (record.status, record.fault) == ("failed", "timeout")
    assert record.message == "stopped after 0.005 minutes"
    assert outcome.failed == 1
    assert not [worker for server in psutil.Process().children() for worker in server.children()]
    again = run(suite, options(tmp_path))
    assert (again.measured, again.failed) == (0, 1)


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
