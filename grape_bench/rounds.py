"""Interleaved rounds: how the members of a block are timed beside each other."""

import math
import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Protocol, TypeVar

from grape_bench.record import TimeReading
from grape_bench.timing import Effort, Stopwatch

Timed = TypeVar("Timed")
T = TypeVar("T")
Lap = tuple[float, float]  # ms of one call, by the stopwatch's clock and by the wall clock

_WINDOWS, _MOST_WINDOWS = 3, 20  # of the warm-up: so many in a row must agree, so many are tried


class MemberError(RuntimeError):
    """A member of a block failed while it was timed; the reason is its cause.

    Args:
        index: of the member among the operations.
    """

    def __init__(self, index: int):
        super().__init__(f"operation {index} of the block failed")
        self.index = index


def once(rounds: Callable[[], T]) -> T:
    """Rounds that nobody guards."""
    return rounds()


class Guard(Protocol):
    """Runs rounds, and again where they were disturbed."""

    def __call__(self, rounds: Callable[[], T]) -> T:
        """What undisturbed rounds give.

        Raises:
            ContendedError: they were disturbed too often.
        """


def interleave(
    operations: Sequence[Timed],
    watch: Stopwatch[Timed],
    effort: Effort,
    *,
    seed: int,
    before: Callable[[int], None],
    guard: Guard = once,
) -> list[TimeReading]:
    """Time operations in shuffled rounds, each round followed by its reverse.

    A machine that drifts in a straight line then drifts alike for all: each pair of rounds has the same mean time
    for every member. Sample r of one reading was taken in the same round as sample r of every other.

    Args:
        seed: of the shuffles.
        before: is told the index of the operation that comes next, outside the timed region; once for all its warm-up.
        guard: runs each pair of rounds.

    Raises:
        MemberError: an operation failed; it says which.
        ContendedError: the guard's word.
    """
    warmup = [_warm_up(number, operation, watch, effort, before) for number, operation in enumerate(operations)]
    inner = [watch.calls(*each, effort.sample_ms) for each in zip(operations, warmup, strict=True)]
    samples: list[list[Lap]] = [[] for _ in operations]
    shuffle = random.Random(seed)

    def run(order: Sequence[int]) -> list[Lap]:
        return [_sample(index, operations[index], watch, inner[index], before) for index in order]

    for _ in range(effort.pairs):
        order = shuffle.sample(range(len(operations)), len(operations))
        order += order[::-1]
        for index, lap in zip(order, guard(partial(run, order)), strict=True):
            samples[index].append(lap)
    return [
        TimeReading(
            samples_ms=tuple(own for own, _ in laps),
            wall_ms=tuple(wall for _, wall in laps),
            warmup_ms=tuple(warm),
            inner=calls,
            clock=watch.clock,
        )
        for laps, warm, calls in zip(samples, warmup, inner, strict=True)
    ]


def _sample(index: int, operation: Timed, watch: Stopwatch[Timed], inner: int, before: Callable[[int], None]) -> Lap:
    before(index)
    with blaming(index):
        return watch.lap(operation, inner)


@contextmanager
def blaming(index: int) -> Iterator[None]:
    """Say of a failure inside whose it is."""
    try:
        yield
    except Exception as error:  # it goes on to the worker, which records it
        raise MemberError(index) from error


def _warm_up(
    index: int, operation: Timed, watch: Stopwatch[Timed], effort: Effort, before: Callable[[int], None]
) -> list[float]:
    before(index)
    laps: list[float] = []
    for _ in range(_MOST_WINDOWS):
        with blaming(index):
            laps += [watch.lap(operation, 1)[0] for _ in range(effort.warmup)]
        if _settled(laps, effort):
            break
    return laps


def _settled(laps: Sequence[float], effort: Effort) -> bool:
    """Whether the medians of the last windows agree."""
    if effort.agreement == math.inf:
        return True
    first = len(laps) - _WINDOWS * effort.warmup
    if first < 0:
        return False
    medians = [
        statistics.median(laps[start : start + effort.warmup]) for start in range(first, len(laps), effort.warmup)
    ]
    return max(medians) <= min(medians) * (1 + effort.agreement)
