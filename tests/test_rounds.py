"""How members of a block are timed beside each other, on a clock that the test moves."""

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Literal

import pytest

from grape_bench.record import TimeReading
from grape_bench.rounds import MemberError, interleave
from grape_bench.timing import Effort, filling

EFFORT = Effort(pairs=6, processes=1, warmup=3, sample_ms=5.0)


class FakeWatch:
    """A stopwatch whose time goes by as told.

    Args:
        costs_ms: of each operation at the start; slowdown: factor on all costs at a time in ms.
    """

    clock: Literal["process_time"] = "process_time"

    def __init__(self, costs_ms: list[float], slowdown: Callable[[float], float] = lambda now: 1.0):
        self.costs, self.slowdown = costs_ms, slowdown
        self.now, self.laps = 0.0, list[tuple[int, int]]()
        self.operations = [self._operation(index) for index in range(len(costs_ms))]

    def _operation(self, index: int) -> Callable[[], object]:
        return lambda: index

    def lap(self, operation: Callable[[], object], inner: int) -> tuple[float, float]:
        index = operation()
        assert isinstance(index, int)
        spent = self.costs[index] * self.slowdown(self.now)
        self.now += spent * inner
        self.laps.append((index, inner))
        return spent, 1.25 * spent

    def calls(self, operation: Callable[[], object], laps: Sequence[float], sample_ms: float) -> int:
        return filling(laps, sample_ms)


def rounds(watch: FakeWatch, effort: Effort) -> list[list[int]]:
    """Who was timed in each round, the warm-up left out."""
    members = len(watch.costs)
    order = [index for index, _ in watch.laps[effort.warmup * members :]]
    return [order[start : start + members] for start in range(0, len(order), members)]


def run(
    watch: FakeWatch, effort: Effort = EFFORT, seed: int = 1, before: Callable[[int], None] = lambda index: None
) -> list[TimeReading]:
    return interleave(watch.operations, watch, effort, seed=seed, before=before)


def test_rounds_are_shuffles_each_followed_by_its_reverse() -> None:
    watch = FakeWatch([1.0] * 5)
    run(watch)
    made = rounds(watch, EFFORT)
    assert len(made) == 2 * EFFORT.pairs
    for one, back in zip(made[::2], made[1::2], strict=True):
        assert sorted(one) == [0, 1, 2, 3, 4]
        assert back == one[::-1]
    assert len({tuple(one) for one in made[::2]}) > 1


def test_the_order_follows_from_the_seed() -> None:
    orders = []
    for seed in (1, 1, 2):
        watch = FakeWatch([1.0] * 5)
        run(watch, seed=seed)
        orders.append(rounds(watch, EFFORT))
    assert orders[0] == orders[1] != orders[2]


def test_every_place_in_a_round_comes_to_every_member() -> None:
    watch, effort = FakeWatch([1.0] * 3), Effort(pairs=300, processes=1, warmup=0, sample_ms=1.0)
    run(watch, effort)
    firsts = [one[0] for one in rounds(watch, effort)[::2]]
    for member in range(3):
        assert firsts.count(member) / 300 == pytest.approx(1 / 3, abs=4 * math.sqrt(2 / 9 / 300))


def test_sample_r_of_every_member_is_of_round_r() -> None:
    """On a clock that counts laps, samples of a round lie between those of the rounds beside it."""
    members = 4
    watch = FakeWatch([1.0] * members)
    count = iter(range(10_000))
    watch.slowdown = lambda now: float(next(count))
    readings = run(watch)
    for number in range(2 * EFFORT.pairs):
        laps = sorted(one.samples_ms[number] for one in readings)
        first = EFFORT.warmup * members + number * members
        assert laps == [first, first + 1, first + 2, first + 3]


def test_readings_keep_every_sample_and_the_warm_up_apart() -> None:
    first, second = run(FakeWatch([2.0, 3.0]))
    assert first.samples_ms == (2.0,) * 12
    assert first.wall_ms == (2.5,) * 12
    assert first.warmup_ms == (2.0,) * 3
    assert second.samples_ms == (3.0,) * 12
    assert (first.clock, first.inner, second.inner) == ("process_time", 2, 2)


@pytest.mark.parametrize(("cost_ms", "inner"), [(0.5, 10), (0.9, 6), (4.0, 1), (200.0, 1), (0.0, 5000)])
def test_a_short_operation_is_called_until_a_sample_is_long_enough(cost_ms: float, inner: int) -> None:
    watch = FakeWatch([cost_ms])
    (reading,) = run(watch)
    assert reading.inner == inner
    assert {calls for _, calls in watch.laps[: EFFORT.warmup]} == {1}
    assert {calls for _, calls in watch.laps[EFFORT.warmup :]} == {inner}


def test_the_fastest_warm_up_lap_decides_the_number_of_calls() -> None:
    """The first one pays for what is built once."""
    watch = FakeWatch([1.0])
    watch.slowdown = lambda now: 100.0 if now == 0 else 1.0
    (reading,) = run(watch)
    assert reading.inner == 5


def test_without_a_warm_up_every_sample_is_one_call() -> None:
    (reading,) = run(FakeWatch([0.001]), Effort(pairs=2, processes=1, warmup=0, sample_ms=5.0))
    assert (reading.inner, reading.warmup_ms, len(reading.samples_ms)) == (1, (), 4)


def test_nothing_to_time_gives_no_reading() -> None:
    assert run(FakeWatch([])) == []


def test_the_next_member_is_told_before_its_lap() -> None:
    watch, told = FakeWatch([1.0, 1.0]), list[tuple[int, int]]()
    run(watch, before=lambda index: told.append((index, len(watch.laps))))
    warmups, rounds = told[:2], told[2:]
    assert warmups == [(0, 0), (1, EFFORT.warmup)], "once each: a process that dies then has its culprit"
    assert [index for index, _ in rounds] == [index for index, _ in watch.laps[6:]]
    assert [laps for _, laps in rounds] == list(range(6, 6 + len(rounds)))


@pytest.mark.parametrize("seed", range(5))
def test_a_drift_of_a_tenth_biases_no_ratio_by_a_hundredth(seed: int) -> None:
    costs = [1.0, 1.5, 0.7, 3.0, 1.0]
    effort = Effort(pairs=8, processes=1, warmup=2, sample_ms=0.1)
    still = FakeWatch(costs)
    run(still, effort, seed)
    length = still.now
    readings = run(FakeWatch(costs, lambda now: 1 + 0.1 * now / length), effort, seed)
    base = readings[0]
    for cost, reading in zip(costs, readings, strict=True):
        logs = [math.log(a / b) for a, b in zip(reading.samples_ms, base.samples_ms, strict=True)]
        pairs = [(one + back) / 2 for one, back in zip(logs[::2], logs[1::2], strict=True)]
        for estimate in (statistics.fmean(logs), statistics.median(logs), statistics.median(pairs)):
            assert math.exp(estimate) == pytest.approx(cost, rel=0.01)
        # Members one after the other would have been biased by most of the drift.
        assert max(reading.samples_ms) / min(reading.samples_ms) > 1.05


def test_who_fails_in_a_round_is_named() -> None:
    watch = FakeWatch([1.0, 1.0, 1.0])
    told: list[int] = []

    def starve() -> object:
        if len(told) > 7:
            raise MemoryError("no memory left")
        return 1

    watch.operations[1] = starve
    with pytest.raises(MemberError) as failed:
        run(watch, before=told.append)
    assert failed.value.index == told[-1] == 1
    assert isinstance(failed.value.__cause__, MemoryError)


def test_who_fails_in_the_warm_up_is_named() -> None:
    watch = FakeWatch([1.0, 1.0])
    watch.operations[1] = lambda: 1 / 0
    with pytest.raises(MemberError) as failed:
        run(watch)
    assert (failed.value.index, type(failed.value.__cause__)) == (1, ZeroDivisionError)


def test_a_guard_has_each_pair_of_rounds_and_its_word_counts() -> None:
    """Rounds that it throws away leave no sample, and the order stays that of the seed."""
    runs: list[list[tuple[float, float]]] = []

    def second(rounds: Callable[[], list[tuple[float, float]]]) -> list[tuple[float, float]]:
        runs.extend((rounds(), rounds()))
        return runs[-1]

    guarded, free = FakeWatch([1.0, 2.0, 3.0]), FakeWatch([1.0, 2.0, 3.0])
    readings = interleave(guarded.operations, guarded, EFFORT, seed=1, before=lambda index: None, guard=second)
    run(free)
    assert {len(one.samples_ms) for one in readings} == {2 * EFFORT.pairs}
    assert [len(one) for one in runs] == [6] * 2 * EFFORT.pairs
    pairs, plain = rounds(guarded, EFFORT), rounds(free, EFFORT)
    assert [pairs[4 * number : 4 * number + 2] for number in range(EFFORT.pairs)] == [
        plain[2 * number : 2 * number + 2] for number in range(EFFORT.pairs)
    ]
