"""What is timed of a call: its work on the device, from a cold cache, and no launches."""

import pytest
from simulated import SimulatedGpu

from grape_bench.gpu.ways import Events, Replays


def test_events_see_the_work_of_a_call_and_not_its_launches() -> None:
    gpu = SimulatedGpu()
    call = gpu.operation(0.02, kernels=20)  # 0.1 ms of launches
    assert Events(gpu, call, plain_ms=0.05, ahead=1).lap(1) > 0.05  # one flush ends before the launches do
    assert Events(gpu, call, plain_ms=0.05, ahead=3).lap(4) == pytest.approx(0.02)


def test_the_cache_is_flushed_before_each_call() -> None:
    gpu = SimulatedGpu()
    call = gpu.operation(0.4, warm=0.25)
    way = Events(gpu, call, plain_ms=0.4, ahead=2)
    assert way.lap(5) == pytest.approx(0.4)
    assert gpu.flushes == 10
    call()
    start = gpu.mark()
    call()
    assert start.elapsed_time(gpu.mark()) == pytest.approx(0.1)  # what it takes from a warm cache


def replays(gpu: SimulatedGpu, ms: float, size: int) -> Replays:
    call = gpu.operation(ms)

    def cold() -> None:
        gpu.flush()
        call()

    graph, flushes = gpu.capture(cold, size), gpu.capture(gpu.flush, size)
    return Replays(gpu, call, plain_ms=ms, ahead=1, graph=graph, flushes=flushes, size=size)


def test_a_replay_is_less_its_flushes() -> None:
    gpu = SimulatedGpu()
    assert replays(gpu, 0.007, 50).lap(50) == pytest.approx(0.007)
    assert gpu.flushes == 2 * (50 + 1)


def test_flushes_are_taken_off_at_the_speed_that_they_have_then() -> None:
    """A flush measured once at the start would be wrong by more than the operation itself."""
    gpu = SimulatedGpu(slowdown=lambda now: 1.0 if now < 10 else 1.5)
    way = replays(gpu, 0.01, 50)
    assert way.lap(50) == pytest.approx(0.01)
    gpu.pause(1.0)
    assert way.lap(50) == pytest.approx(0.015)


def test_a_sample_of_a_graph_is_whole_graphs() -> None:
    gpu = SimulatedGpu()
    way = replays(gpu, 0.01, 20)
    assert way.calls([0.01], 5.0) == 20
    before = gpu.flushes
    way.lap(60)
    assert gpu.flushes - before == 3 * 2 * (20 + 1)
