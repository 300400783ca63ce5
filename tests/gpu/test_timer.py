"""A block on a simulated GPU, from operations to readings."""

from dataclasses import dataclass, field

import pytest
from simulated import COOL, SimulatedGpu

from grape_bench.gpu.timer import GpuTimer
from grape_bench.gpu_reading import GpuState
from grape_bench.timing import EFFORTS, ContendedError, Effort

EFFORT = Effort(pairs=3, processes=1, warmup=3, sample_ms=5.0, agreement=0.01)


@dataclass
class Nvml:
    """Gives the states of a list by turns, the last one for good."""

    states: list[GpuState] = field(default_factory=lambda: [COOL])
    looks: int = 0

    def __call__(self) -> GpuState:
        self.looks += 1
        return self.states[min(self.looks, len(self.states)) - 1]


def time(gpu, *operations, look=None, effort=EFFORT):
    timer = GpuTimer(gpu, look or Nvml(), kernels=lambda operations: [], now=gpu.now, pause=gpu.pause)
    return timer.time(operations, effort, seed=1, before=lambda index: None)


def test_two_short_kernels_have_the_ratio_of_their_work():
    gpu = SimulatedGpu()
    one, other = time(gpu, gpu.operation(0.010), gpu.operation(0.015, kernels=5))
    assert one.samples_ms == pytest.approx([0.010] * 6)
    assert other.samples_ms == pytest.approx([0.015] * 6)
    assert (one.clock, one.gpu.mode, other.gpu.mode) == ("cuda_event", "graph", "graph")
    assert one.inner > 50
    assert one.overhead_ms == pytest.approx(0.0, abs=1e-6)


def test_a_call_of_many_launches_is_marked_and_its_own_time_kept():
    gpu = SimulatedGpu()
    few, many = time(gpu, gpu.operation(0.05), gpu.operation(0.05, kernels=40))
    assert (few.gpu.launch_bound, many.gpu.launch_bound) == (False, True)
    assert many.gpu.plain_ms == pytest.approx(40 * gpu.launch_ms, rel=0.1)
    assert many.samples_ms == pytest.approx([0.05] * 6)


def test_an_operation_beyond_a_tenth_of_a_millisecond_may_be_launch_bound_too():
    gpu = SimulatedGpu()
    (one,) = time(gpu, gpu.operation(0.3, kernels=200))
    assert (one.gpu.mode, one.gpu.launch_bound) == ("events", True)
    assert one.samples_ms == pytest.approx([0.3] * 6)


def test_at_least_twice_the_cache_is_flushed_and_recorded():
    gpu = SimulatedGpu(flushed_mib=120.0)
    (one,) = time(gpu, gpu.operation(2.0, warm=0.1))
    assert one.gpu.flushed_mib == 120.0
    assert one.samples_ms == pytest.approx([2.0] * 6)


def test_the_states_of_the_gpu_are_in_the_record():
    gpu = SimulatedGpu()
    (one,) = time(gpu, gpu.operation(0.5))
    assert one.gpu.states == (COOL,) * 4  # before the first pair of rounds, and after each of three
    assert (one.gpu.discarded, one.gpu.unwatched) == ((), None)


def test_a_lowered_clock_discards_samples_and_the_count_is_shown():
    gpu = SimulatedGpu()
    slow = COOL.model_copy(update={"sm_mhz": 1400})
    (one,) = time(gpu, gpu.operation(0.5), look=Nvml([COOL, COOL, slow, COOL]))
    assert one.gpu.discarded == ("its SM clock was 1400 MHz after 1980 MHz",)
    assert len(one.samples_ms) == 2 * EFFORT.pairs
    assert slow not in one.gpu.states


def test_samples_of_a_slow_gpu_do_not_reach_the_reading():
    """Work takes three times as long while NVML tells of heat."""
    nvml = Nvml([COOL, COOL])
    hot = COOL.model_copy(update={"reasons": ("hardware thermal slowdown",)})
    gpu = SimulatedGpu(slowdown=lambda now: 3.0 if nvml.looks in (2, 3) else 1.0)
    nvml.states = [COOL, COOL, hot, COOL]
    (one,) = time(gpu, gpu.operation(0.5), look=nvml)
    assert one.samples_ms == pytest.approx([0.5] * 6)
    assert len(one.gpu.discarded) == 1


def test_a_gpu_that_throttles_on_and_on_is_a_failure():
    gpu = SimulatedGpu()
    hot = COOL.model_copy(update={"reasons": ("hardware slowdown",)})
    with pytest.raises(ContendedError, match="hardware slowdown"):
        time(gpu, gpu.operation(0.5), look=Nvml([hot]))


def test_a_gpu_that_nobody_can_watch_says_so():
    gpu = SimulatedGpu()
    (one,) = time(gpu, gpu.operation(0.5), look="NVML does not answer: Driver Not Loaded")
    assert (one.gpu.states, one.gpu.unwatched) == ((), "NVML does not answer: Driver Not Loaded")


def test_the_gpu_works_when_it_is_looked_at():
    gpu, idle = SimulatedGpu(), []

    def look() -> GpuState:
        idle.append(gpu.free <= gpu.host)
        return COOL

    time(gpu, gpu.operation(0.5), look=look)
    assert idle == [False] * 4


def test_the_warm_up_goes_on_until_its_windows_agree():
    gpu = SimulatedGpu(slowdown=lambda now: 1.0 + 2.0 * max(0.0, 1 - now / 400))
    (one,) = time(gpu, gpu.operation(5.0))
    assert len(one.warmup_ms) > 9
    last = [
        sorted(one.warmup_ms[start : start + 3])[1] for start in range(len(one.warmup_ms) - 9, len(one.warmup_ms), 3)
    ]
    assert max(last) <= 1.01 * min(last)
    steady = SimulatedGpu()
    (one,) = time(steady, steady.operation(5.0))
    assert len(one.warmup_ms) == 9


def test_a_warm_up_that_never_settles_ends():
    gpu = SimulatedGpu()
    gpu.slowdown = lambda now: 1.0 + (now % 97) / 97
    (one,) = time(gpu, gpu.operation(5.0))
    assert len(one.warmup_ms) <= 60


@pytest.mark.parametrize(("name", "processes"), [("quick", 1), ("quick", 3), ("quick", 5), ("full", 3), ("full", 7)])
def test_a_member_has_thirty_samples_over_its_processes(name, processes):
    effort = GpuTimer(SimulatedGpu(), Nvml()).effort(EFFORTS[name], processes)
    assert 2 * effort.pairs * processes >= 30
    assert effort.pairs >= EFFORTS[name].pairs
