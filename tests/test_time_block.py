"""What becomes of the members of a block when one of them fails, on a CPU and a timer that the test moves."""

import gc
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import pytest
import torch

from grape_bench.attempt import Note, Result
from grape_bench.cell import Block, CostCell
from grape_bench.encodings.rope import Rope
from grape_bench.record import TimeReading
from grape_bench.rounds import MemberError
from grape_bench.time_block import HostTimer, TimeBlock, Timer
from grape_bench.timing import ContendedError, Effort, Operation

EFFORT = Effort(pairs=2, processes=1, warmup=1, sample_ms=0.01)
BLOCK = Block(
    tuple(
        CostCell(metric="forward_ms", encoding=one, length=24, heads=2, head_dim=8) for one in ("none", "rope", "t5")
    ),
    0,
)


@dataclass
class Failing:
    """Times on a CPU, and fails in some rounds.

    Args:
        errors: by how often rounds were begun: the index of the member that fails then, or None for all of them.
        begun: what the operations of each time have become.
    """

    errors: dict[int, tuple[int | None, Exception]] = field(default_factory=dict)
    begun: list[list[bool]] = field(default_factory=list)
    _seen: list[weakref.ref[Operation]] = field(default_factory=list)

    def effort(self, effort: Effort, processes: int) -> Effort:
        return effort

    def time(
        self, operations: Sequence[Operation], effort: Effort, *, seed: int, before: Callable[[int], None]
    ) -> list[TimeReading]:
        self.begun.append([one() is not None for one in self._seen])
        self._seen = self._seen or [weakref.ref(one) for one in operations]
        index, error = self.errors.get(len(self.begun), (None, None))
        if error is not None and index is None:
            raise error

        def fail(operation: Operation) -> object:
            assert error is not None
            raise type(error)(*error.args)  # a new one: its traceback holds the operation

        tried = [partial(fail, one) if number == index else one for number, one in enumerate(operations)]
        return HostTimer().time(tried, effort, seed=seed, before=before)

    def notes(self, operations: Sequence[Operation]) -> list[tuple[str, ...]]:
        return [(f"kernel {number} of {len(operations)}",) for number in range(len(operations))]


def measure(timer: Timer, block: Block = BLOCK) -> tuple[list[Result], list[Note]]:
    told: list[Note] = []
    torch.set_num_threads(1)
    return TimeBlock(block, "cpu", 1, timer, told.append).measure(EFFORT), told


def standing(results: list[Result]) -> list[tuple[str, str, str]]:
    return [(one.cell.encoding, one.role, one.fault or one.status) for one in results]


def test_a_member_that_runs_out_of_memory_in_a_round_is_blamed_and_the_block_goes_on() -> None:
    results, _ = measure(Failing({1: (1, torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB"))}))
    assert standing(results) == [
        ("rope", "member", "oom"),
        ("none", "member", "ok"),
        ("t5", "member", "ok"),
        ("none", "control", "ok"),
    ]
    assert "Tried to allocate 9 GiB" in results[0].message
    readings = [one.reading for one in results if one.status == "ok"]
    assert {len(one.samples_ms) for one in readings} == {2 * EFFORT.pairs}


def test_what_the_failed_member_held_is_gone_when_the_rest_begins() -> None:
    timer = Failing({1: (1, torch.OutOfMemoryError("out"))})
    gc.disable()
    try:
        measure(timer)
    finally:
        gc.enable()
    assert timer.begun[1][:4] == [True, False, True, True]  # none, rope, t5 and the control


def test_two_that_fail_one_after_the_other_are_both_blamed() -> None:
    errors = {1: (2, torch.OutOfMemoryError("out")), 2: (1, ZeroDivisionError("none"))}
    results, _ = measure(Failing(errors))
    assert standing(results) == [
        ("t5", "member", "oom"),
        ("rope", "member", "error"),
        ("none", "member", "ok"),
        ("none", "control", "ok"),
    ]


def test_a_control_that_fails_takes_its_baseline_along() -> None:
    results, _ = measure(Failing({1: (3, torch.OutOfMemoryError("out"))}))
    assert standing(results) == [("none", "member", "oom"), ("rope", "member", "ok"), ("t5", "member", "ok")]


def test_a_device_that_does_not_hold_still_fails_every_member_once() -> None:
    sentence = "the GPU did not hold still: 4 attempts"
    results, _ = measure(Failing({1: (None, ContendedError(sentence))}))
    assert standing(results) == [(one, "member", "throttled") for one in ("none", "rope", "t5")]
    assert all(sentence in one.message for one in results)


def test_a_sentinel_that_fails_is_nobodys_fault() -> None:
    with pytest.raises(MemberError):
        measure(Failing({1: (4, RuntimeError("the device is lost"))}))


def test_out_of_memory_in_the_preflight_is_blamed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def starve(self, *arguments):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Rope, "rotate", starve)
    results, _ = measure(HostTimer())
    assert ("rope", "member", "oom") in standing(results)
    assert [one.cell.encoding for one in results if one.status == "ok"] == ["none", "t5", "none"]


def test_notes_of_the_device_are_kept_with_their_member() -> None:
    results, told = measure(Failing(), BLOCK.without(BLOCK.cells[2].id))
    assert [one.notes for one in results] == [(f"kernel {number} of 3",) for number in range(3)]
    assert [one.text for one in told[:2]] == ["gate"] * 2
    assert {one.text for one in told[2:]} == {"time"}
