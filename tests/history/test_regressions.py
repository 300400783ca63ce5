"""Planted steps are found at their commits, and nothing else is."""

import json
from pathlib import Path

import numpy as np
import pytest

from grape_bench import cli
from grape_bench.cell import AccuracyCell, CostCell
from grape_bench.errors import UserError
from grape_bench.history.export import export
from grape_bench.history.publish import publish
from grape_bench.history.regressions import regressions, steps
from grape_bench.record import TimeReading
from grape_bench.store import Store
from grape_bench.suite_format import Thresholds

CELL = CostCell(metric="forward_ms", encoding="rope", length=64)


@pytest.fixture
def times(make_record):
    """Records of one cell at commits that are so many times as slow."""

    def make(*factors, machine=None):
        rng = np.random.default_rng(0)
        line = []
        for number, factor in enumerate(factors):
            samples = tuple(factor * np.exp(rng.normal(0, 0.02, 16)))
            sentinel = tuple(machine[number] * np.exp(rng.normal(0, 0.02, 16))) if machine else ()
            reading = TimeReading(samples_ms=samples, wall_ms=samples, clock="process_time", sentinel_ms=sentinel)
            record = make_record(CELL, reading=reading, block_run=f"block-{number}", run=f"run-{number}")
            line.append((f"commit {number}", [record]))
        return line

    return make


def found(line):
    return [(one.commit, one.confirmed) for one in steps(line, Thresholds())]


def test_ours_names_the_right_commit_for_each_and_nothing_else(planted):
    done = regressions([], planted.store)
    assert {(one.what.split(",")[0], one.commit) for one in done.steps} == {
        ("rope: forward_ms attention 64", planted.slower),
        ("rope: forward_ms attention 128", planted.slower),
        ("t5: peak_mib attention 64", planted.larger),
        ("t5: peak_mib attention 128", planted.larger),
        ("none: registers accuracy at 64", planted.worse),
        ("none: registers accuracy at 128", planted.worse),
    }
    by_word = {one.comparison.word: one.comparison.interval.mid for one in done.steps}
    assert by_word["slower"] == pytest.approx(1.4, rel=0.03)
    assert by_word["larger"] == 2
    assert by_word["worse"] == pytest.approx(-0.1, abs=0.02)
    assert all(one.confirmed for one in done.steps)


def test_asv_names_the_right_commit_for_each_and_nothing_else(planted):
    export([], planted.store)
    folder = publish().parent
    commits = {int(key): value for key, value in json.loads(_text(folder / "index.json"))["revision_to_hash"].items()}
    entries = json.loads(_text(folder / "regressions.json"))["regressions"]
    named = {
        (entry[0].removeprefix("suite.planted_steps_"), commits[jump[1]]) for entry in entries for jump in entry[6]
    }
    lengths = ("64", "128")
    assert named == {
        *((f"attention.track_forward_time('rope', {one})", planted.slower) for one in lengths),
        *((f"attention.track_peak_memory('t5', {one})", planted.larger) for one in lengths),
        *((f"registers.track_extrapolation_error('none', 128, {seed})", planted.worse) for seed in range(3)),
    }
    assert all(len(entry[6]) == 1 for entry in entries)


def test_a_regression_is_exit_code_3_with_commit_factor_and_interval(planted, capsys):
    assert cli.main(["history", "regressions", planted.suite]) == 3
    rows = [line for line in capsys.readouterr().out.splitlines() if "rope: forward_ms" in line]
    assert len(rows) == 2
    assert all(planted.slower[:10] in row and " 1." in row and "[1." in row for row in rows)


def test_a_suites_thresholds_are_its_own(planted, capsys):
    path = Path("grape_bench/asv_benchmarks/suites") / f"{planted.suite}.yaml"
    path.write_text(_text(path) + "regressions: {time: 0.6, memory: 1.5, accuracy: 0.3}\n", encoding="utf-8")
    assert cli.main(["history", "regressions"]) == 0
    assert "no regression in 15 cells" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("factors", "expected"),
    [
        ((1, 1, 1, 1.4, 1.4, 1.4), [("commit 3", True)]),
        ((1, 1, 1, 1, 1, 1.4), [("commit 5", False)]),  # nothing after it can say that it passed
        ((1, 1, 1, 1.4, 1, 1), []),  # it passed
        ((1.4, 1.4, 1.4, 1, 1, 1), []),  # for the better
        ((1.4, 1.4, 1, 1, 1.4, 1.4), [("commit 4", True)]),  # and lost again
        ((1, 1, 1.4, 1.4, 2, 2), [("commit 2", True), ("commit 4", True)]),
        ((1, 1.02, 0.98, 1.01, 1, 0.99), []),
    ],
)
def test_a_step_is_a_change_for_the_worse_that_stays(times, factors, expected):
    assert found(times(*factors)) == expected


def test_a_machine_that_slowed_down_is_no_step(times):
    """The sentinel, a fixed multiplication in the same rounds, slowed down with it."""
    factors = (1, 1, 1, 1.4, 1.4, 1.4)
    assert found(times(*factors, machine=factors)) == []
    assert found(times(*factors, machine=(1,) * 6)) == [("commit 3", True)]


def test_seeds_that_are_not_shared_are_no_step(make_record):
    def trained(seed):
        return [
            make_record(AccuracyCell(task="registers", encoding="rope", seed=seed, train_length=64, test_lengths=(64,)))
        ]

    assert found([("commit 0", trained(0)), ("commit 1", trained(1)), ("commit 2", trained(1))]) == []


def test_unlike_environments_are_different_lines(planted, environment):
    """Another torch at the newest commit is slower, which is no fault of the commit."""
    *_, last = (one for one in planted.records() if one.cell.kind == "cost" and one.cell.metric == "forward_ms")
    samples = tuple(3 * one for one in last.reading.samples_ms)
    other = last.model_copy(
        update={
            "environment": last.environment.model_copy(update={"torch": "3.0"}),
            "reading": last.reading.model_copy(update={"samples_ms": samples}),
        }
    )
    before = regressions([], planted.store)
    with planted.store.writing(environment.machine, planted.suite) as writer:
        writer.append([other])
    assert regressions([], planted.store) == before


def test_a_suite_without_records_is_refused(planted):
    with pytest.raises(UserError, match=r"planted has no records under results\. Did you mean 'planted-steps'"):
        regressions(["planted"], Store(Path("results")))


def _text(path):
    return path.read_text(encoding="utf-8")
