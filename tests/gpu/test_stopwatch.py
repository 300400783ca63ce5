"""In which way each operation of a block is timed."""

import pytest
from simulated import SimulatedGpu

from grape_bench.gpu.stopwatch import GpuStopwatch
from grape_bench.gpu.ways import Replays
from grape_bench.rounds import MemberError

SAMPLE_MS = 5.0


def ready(gpu: SimulatedGpu, *operations, told=None):
    before = (told if told is not None else []).append
    return GpuStopwatch(gpu, gpu.now).ready(operations, SAMPLE_MS, before)


def test_a_short_kernel_is_measured_by_the_replay_of_a_graph_of_many() -> None:
    gpu = SimulatedGpu()
    (way,) = ready(gpu, gpu.operation(0.015, kernels=3))
    assert isinstance(way, Replays)
    assert way.size == pytest.approx(SAMPLE_MS / (0.015 + 0.035), abs=2)
    assert GpuStopwatch(gpu, gpu.now).lap(way, way.size)[0] == pytest.approx(0.015)


def test_an_operation_of_a_tenth_of_a_millisecond_is_timed_by_events() -> None:
    gpu = SimulatedGpu()
    (way,) = ready(gpu, gpu.operation(0.12))
    assert way.mode == "events"
    assert way.lap(3) == pytest.approx(0.12)
    assert gpu.captures == []


def test_launches_do_not_make_an_operation_long() -> None:
    """By itself it takes 0.5 ms, the host's time for 100 launches; on the device it takes 0.04."""
    gpu = SimulatedGpu()
    (way,) = ready(gpu, gpu.operation(0.04, kernels=100))
    assert way.plain_ms == pytest.approx(0.5, rel=0.05)
    assert way.mode == "graph"
    assert way.lap(way.size) == pytest.approx(0.04)


def test_one_short_member_has_all_of_its_block_captured() -> None:
    gpu = SimulatedGpu()
    ways = ready(gpu, gpu.operation(0.05), gpu.operation(3.0))
    assert [one.mode for one in ways] == ["graph", "graph"]
    assert ways[1].lap(1) == pytest.approx(3.0)


def test_what_waits_for_the_device_is_timed_by_events_and_says_why() -> None:
    gpu = SimulatedGpu()
    plain, waiting = ready(gpu, gpu.operation(0.05), gpu.operation(0.06, waits=True))
    assert (plain.mode, plain.uncaptured) == ("graph", None)
    assert (waiting.mode, waiting.uncaptured) == ("events", "the host waits for the device")
    assert waiting.lap(3) == pytest.approx(0.06)


def test_wall_time_holds_all_that_a_sample_took() -> None:
    gpu = SimulatedGpu()
    watch = GpuStopwatch(gpu, gpu.now)
    (way,) = watch.ready([gpu.operation(0.4)], SAMPLE_MS, lambda index: None)
    before = gpu.host
    own, wall = watch.lap(way, 5)
    assert own == pytest.approx(0.4)
    assert wall == pytest.approx((gpu.host - before) / 5)
    assert wall > 0.4 + gpu.flush_ms


def test_who_fails_is_named_and_was_told_before() -> None:
    gpu, told = SimulatedGpu(), []

    def starve() -> None:
        raise MemoryError("no memory left")

    with pytest.raises(MemberError) as failed:
        ready(gpu, gpu.operation(0.2), starve, told=told)
    assert failed.value.index == 1
    assert isinstance(failed.value.__cause__, MemoryError)
    assert told == [0, 1]


def test_many_milliseconds_of_launches_are_hidden_too() -> None:
    """A training step of 2000 kernels: 10 ms of launches, 2 ms of work."""
    gpu = SimulatedGpu()
    (way,) = ready(gpu, gpu.operation(2.0, kernels=2000))
    assert way.plain_ms == pytest.approx(10.0, rel=0.05)
    assert way.lap(1) == pytest.approx(2.0)


def test_who_always_waits_is_not_flushed_for_long() -> None:
    gpu = SimulatedGpu()
    (way,) = ready(gpu, gpu.operation(400.0, waits=True))
    before = gpu.host
    assert way.lap(1) == pytest.approx(400.0, rel=0.01)
    assert gpu.host - before < 440
