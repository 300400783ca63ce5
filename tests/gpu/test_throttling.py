"""Which rounds count, by what NVML said before and after them."""

from itertools import chain, repeat

import pytest
from simulated import COOL

from grape_bench.gpu.throttling import ATTEMPTS, Watch, disturbance
from grape_bench.gpu_reading import GpuState
from grape_bench.timing import ContendedError

HOT = COOL.model_copy(update={"reasons": ("software thermal slowdown",), "temperature_c": 88, "sm_mhz": 1200})


def watch(*states: GpuState) -> tuple[Watch, list[float]]:
    """One that sees these states, and the last one for good; and the seconds that it rests."""
    rests: list[float] = []
    seen = chain(states, repeat(states[-1]))
    return Watch(lambda: next(seen), pause=rests.append), rests


def count() -> tuple[list[int], object]:
    runs: list[int] = []
    return runs, lambda: runs.append(len(runs)) or len(runs)


def test_rounds_on_a_steady_gpu_count_at_once() -> None:
    one, rests = watch(COOL)
    _, rounds = count()
    assert [one(rounds), one(rounds)] == [1, 2]
    assert (one.states, one.discarded, rests) == ([COOL] * 3, [], [])


def test_disturbed_rounds_are_thrown_away_and_measured_again() -> None:
    one, rests = watch(COOL, HOT, HOT, COOL, COOL, COOL)
    _, rounds = count()
    assert one(rounds) == 3  # what the third attempt gave
    assert len(one.discarded) == len(rests) == 2
    assert one.discarded[0] == "the GPU throttled by software thermal slowdown at 88 °C"
    assert one.states == [COOL, COOL]


def test_a_gpu_that_stays_hot_is_given_up_after_some_attempts() -> None:
    one, _ = watch(COOL, HOT)
    runs, rounds = count()
    with pytest.raises(ContendedError, match=r"did not hold still: 4 attempts .* thermal slowdown at 88 °C"):
        one(rounds)
    assert len(runs) == ATTEMPTS == 4


def test_work_is_queued_before_each_look() -> None:
    """An idle GPU lowers its clocks."""
    order: list[str] = []
    one = Watch(lambda: order.append("look") or COOL, load=lambda: order.append("load"))
    one(lambda: order.append("rounds"))
    assert order == ["load", "look", "rounds", "load", "look"]


@pytest.mark.parametrize(
    "reason",
    ["hardware slowdown", "software thermal slowdown", "hardware thermal slowdown", "power brake"],
)
def test_reasons_that_slow_a_gpu_disturb(reason: str) -> None:
    slow = COOL.model_copy(update={"reasons": ("idle", reason)})
    assert reason in disturbance([], COOL, slow)
    assert reason in disturbance([], slow, COOL)


@pytest.mark.parametrize("reason", ["idle", "application clocks", "sync boost", "display clocks", "power cap"])
def test_reasons_that_are_ordinary_do_not(reason: str) -> None:
    assert disturbance([], COOL, COOL.model_copy(update={"reasons": (reason,)})) == ""


@pytest.mark.parametrize(
    ("key", "mhz", "disturbs"), [("sm_mhz", 1930, False), ("sm_mhz", 1900, True), ("memory_mhz", 2600, True)]
)
def test_a_clock_may_move_by_three_percent(key: str, mhz: int, disturbs: bool) -> None:
    slow = COOL.model_copy(update={key: mhz})
    assert (f"{mhz} MHz" in disturbance([], COOL, slow)) is disturbs


def test_a_clock_is_compared_with_all_rounds_that_count() -> None:
    slow = COOL.model_copy(update={"sm_mhz": 1700})
    assert disturbance([], slow, slow) == ""
    assert disturbance([COOL], slow, slow) == "its SM clock was 1700 MHz after 1980 MHz"


def test_a_power_cap_explains_a_clock() -> None:
    capped = COOL.model_copy(update={"sm_mhz": 1500, "reasons": ("power cap",)})
    assert disturbance([COOL], COOL, capped) == ""


def test_a_guest_on_the_gpu_disturbs() -> None:
    assert disturbance([], COOL, COOL.model_copy(update={"others": 1})) == "1 other process computed on it"
    assert disturbance([], COOL.model_copy(update={"others": 2}), COOL) == "2 other processes computed on it"


def test_what_nvml_does_not_tell_disturbs_nothing() -> None:
    assert disturbance([GpuState()], GpuState(), GpuState()) == ""
