"""Blocks on places that are made up: who gets which file, what is tried again, and when a run must stop."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from grape_bench import suite as suites
from grape_bench.agenda import Agenda, agenda
from grape_bench.cell import Block
from grape_bench.environment import Environment
from grape_bench.executors import Died, Event, Executor
from grape_bench.ledger import Ledger
from grape_bench.loop import Loop
from grape_bench.placing import Place
from grape_bench.progress import Progress
from grape_bench.record import Record, RunStart
from grape_bench.registry import Registry
from grape_bench.store import DiskError, Store, Writer
from grape_bench.suite import Suite
from grape_bench.view import View
from grape_bench.worker import Finished, Note, Protocol, Result

TEXT = """
title: Tiny
baseline: none
processes: 3
encodings: [none, rope]
seeds: [0, 1]
cost:
  - {lengths: [16], heads: [2], head_dim: [8], metrics: [forward_ms, peak_mib]}
accuracy:
  - {task: registers, train_length: 16, test_lengths: [16]}
"""
START = RunStart(run="run-1", suite="tiny", at="2024-01-02T00:00:00Z")
LOST = Died("the node is gone", killed=False, lost=True)
CRASH = Died("the process ended by signal SIGSEGV", killed=False)
Script = Callable[[Block, int], Event | None]


@dataclass
class Stub(Executor):
    """Ends each block at once, with fabricated readings or as its script says for this attempt.

    Args:
        dead: names of places that are gone; begun: what was started, and where.
        said, left: why the run stopped, and what it left.
    """

    fabricate: Callable[..., Record]
    script: Script = lambda block, attempt: None
    dead: set[str] = field(default_factory=set)
    begun: list[tuple[str, Block]] = field(default_factory=list)
    events: list[tuple[int, Event]] = field(default_factory=list)
    said: str = ""
    left: list[Block] = field(default_factory=list)

    def alive(self, place: Place) -> bool:
        return place.name not in self.dead

    def start(self, block: Block, protocol: Protocol, place: Place) -> int:
        self.begun.append((place.name, block))
        attempt = sum(one == block for _, one in self.begun)
        readings = (Result(cell, "ok", self.fabricate(cell).reading) for cell in block.cells)
        end = self.script(block, attempt) or Finished(tuple(readings), place.environment, 1.0)
        self.events += [(len(self.begun), Note(block.cells[-1].id, "time")), (len(self.begun), end)]
        return len(self.begun)

    def wait(self, seconds: float) -> list[tuple[int, Event]]:
        events, self.events = self.events, []
        return events


@dataclass
class Bench:
    """The suite on one folder of results."""

    store: Store
    make_record: Callable[..., Record]
    suite: Suite = field(default_factory=lambda: suites.parse(TEXT, "tiny.yaml"))

    def agenda(self, places: Sequence[Place]) -> Agenda:
        machines = dict.fromkeys(place.environment.machine for place in places)
        lines = {one: list(self.store.lines("tiny", one)) for one in machines}
        return agenda(suites.group(suites.expand(self.suite), "none"), lines, places, processes=3)

    def run(self, places: Sequence[Place], script: Script = lambda block, attempt: None, dead: str = "") -> Stub:
        executor, found = Stub(self.make_record, script, {*dead}), self.agenda(places)
        with ExitStack() as held, Progress("tiny", found.blocks, found.records, places) as progress:
            machines = {place.environment.machine for place in places}
            writers = {one: held.enter_context(self.store.writing(one, "tiny")) for one in machines}
            loop = Loop(self.suite, Ledger(START, writers), executor, places, Protocol(), progress)
            executor.said, executor.left = loop.run(found.jobs), loop.left
        return executor

    def counts(self, machine: str) -> Counter[tuple[str, str]]:
        return Counter((one.cell.metric, one.status) for one in self.store.records("tiny", machine))


@pytest.fixture
def bench(tmp_path: Path, make_record: Callable[..., Record]) -> Bench:
    return Bench(Store(tmp_path), make_record)


@pytest.fixture
def box(environment: Environment) -> tuple[Place, ...]:
    """Two old GPUs and a new one."""
    devices = {"0": "old-gpu", "1": "old-gpu", "2": "new-gpu"}
    at = {name: environment.model_copy(update={"machine": one, "device": one}) for name, one in devices.items()}
    return tuple(Place(name, at[name], slots=2) for name in devices)


def test_each_kind_of_device_has_its_costs_and_its_file(bench: Bench, box: tuple[Place, ...]) -> None:
    """A block of two in three processes, and two peaks, on each kind; four trainings, wherever they were."""
    assert bench.run(box).said == ""
    costs = {("forward_ms", "ok"): 6, ("peak_mib", "ok"): 2}
    old, new = bench.counts("old-gpu"), bench.counts("new-gpu")
    assert {key: n for key, n in old.items() if key[0] != "accuracy"} == costs
    assert {key: n for key, n in new.items() if key[0] != "accuracy"} == costs
    assert old["accuracy", "ok"] + new["accuracy", "ok"] == 4
    for machine in ("old-gpu", "new-gpu"):
        assert {one.environment.device for one in bench.store.records("tiny", machine)} == {machine}
    assert bench.agenda(box).jobs == ()


def test_what_one_kind_has_measured_is_left_for_the_other(bench: Bench, box: tuple[Place, ...]) -> None:
    bench.run(box[:2])
    assert Counter(job.block.cells[0].metric for job in bench.agenda(box).jobs) == {"forward_ms": 3, "peak_mib": 2}
    assert bench.agenda(box).known == 4, "the trainings"
    assert bench.agenda(box[:2]).jobs == ()


def test_costs_of_two_kinds_are_never_in_one_comparison(bench: Bench, box: tuple[Place, ...]) -> None:
    bench.run(box)
    records = [one for one in bench.store.records("tiny") if one.cell.metric == "forward_ms"]
    of = {one.block_run: one.environment.device for one in records}
    assert sorted(of.values()) == [*["new-gpu"] * 3, *["old-gpu"] * 3]
    view = View.of(bench.suite, suites.expand(bench.suite), bench.store.records("tiny"), Registry("metrics"))
    assert len(view.benches) == 2


def test_a_block_whose_machine_was_lost_is_tried_again_elsewhere(bench: Bench, box: tuple[Place, ...]) -> None:
    done = bench.run(box[:2], lambda block, attempt: LOST if attempt == 1 else None)
    assert done.said == ""
    assert bench.counts("old-gpu") == {("forward_ms", "ok"): 6, ("peak_mib", "ok"): 2, ("accuracy", "ok"): 4}


def test_a_block_that_is_lost_three_times_is_a_failure_with_the_reason(bench: Bench, box: tuple[Place, ...]) -> None:
    def script(block: Block, attempt: int) -> Event | None:
        return LOST if block.cells[0].metric == "accuracy" and block.cells[0].seed == 1 else None

    done = bench.run(box[:2], script)
    attempts = Counter(block.id for _, block in done.begun if script(block, 1))
    assert [*attempts.values()] == [3, 3], "two retries"
    failed = [one for one in bench.store.records("tiny") if one.status != "ok"]
    assert {(one.status, one.fault, one.message) for one in failed} == {
        ("failed", "error", "the node is gone (tried 3 times)")
    }
    assert len(failed) == 2


def test_the_rest_of_a_lost_block_has_its_own_retries(bench: Bench, box: tuple[Place, ...]) -> None:
    """The member that was worked on is blamed, and its block goes on without it."""
    done = bench.run(box[:1], lambda block, attempt: LOST if len(block.cells) == 2 and attempt <= 3 else None)
    timed = [one for one in bench.store.records("tiny") if one.cell.metric == "forward_ms"]
    assert Counter((one.cell.encoding, one.status) for one in timed) == {("rope", "failed"): 1, ("none", "ok"): 3}
    assert done.said == ""


def test_a_failure_on_one_kind_is_none_on_the_other(bench: Bench, box: tuple[Place, ...]) -> None:
    """Memory that one device lacks, another may have."""
    ends = [Died("no memory", killed=True, oom=True)]
    bench.run(box, lambda block, attempt: ends.pop() if ends and block.cells[0].metric == "peak_mib" else None)
    counts = bench.counts("old-gpu") + bench.counts("new-gpu")
    assert (counts["peak_mib", "failed"], counts["peak_mib", "ok"]) == (1, 3)
    (failed,) = [one for one in bench.store.records("tiny") if one.status == "failed"]
    assert failed.fault == "oom"


def test_a_run_without_places_stops_and_says_what_is_left(bench: Bench, box: tuple[Place, ...]) -> None:
    assert bench.run(box[:2], dead="01").said == "no machine is left for what remains"
    done = bench.run(box, dead="01")
    assert done.said == "no machine is left for what remains"
    assert bench.counts("new-gpu") == {("forward_ms", "ok"): 6, ("peak_mib", "ok"): 2, ("accuracy", "ok"): 4}
    left = bench.agenda(box).jobs
    assert {job.block.cells[0].metric for job in left} == {"forward_ms", "peak_mib"}
    assert {job.kind[0] for job in left if job.kind} == {"old-gpu"}


@pytest.mark.parametrize("end", [None, CRASH], ids=["a whole block", "a death"])
def test_what_cannot_be_written_is_left_to_do(
    bench: Bench, box: tuple[Place, ...], monkeypatch: pytest.MonkeyPatch, end: Event | None
) -> None:
    def full(self: Writer, lines: Sequence[Record]) -> None:
        raise DiskError("tiny.jsonl cannot be written: No space left on device")

    monkeypatch.setattr(Writer, "append", full)
    done = bench.run(box[:1], lambda block, attempt: end)
    assert "No space left on device" in done.said
    assert Counter(map(str, done.left)) == Counter(str(job.block) for job in bench.agenda(box[:1]).jobs)
