"""Stopwatches of a CPU, how long is measured, and the time of day."""

import time
from collections.abc import Callable
from typing import Literal

import psutil
import pytest

from grape_bench import timing
from grape_bench.timing import ContendedError, HostStopwatch


def test_cpu_time_does_not_count_sleep_and_wall_time_does() -> None:
    own, wall = HostStopwatch().lap(lambda: time.sleep(0.02), 2)
    assert wall >= 20
    assert own < 10
    own, wall = HostStopwatch("perf_counter").lap(lambda: time.sleep(0.02), 1)
    assert own == wall >= 20


def test_a_lap_is_averaged_over_its_calls() -> None:
    calls: list[None] = []
    _, wall = HostStopwatch().lap(lambda: (calls.append(None), time.sleep(0.005)), 4)
    assert len(calls) == 4
    assert 5 <= wall < 20


def test_one_thread_is_timed_by_cpu_time_and_more_by_the_wall() -> None:
    assert timing.stopwatch().clock == "process_time"
    assert timing.stopwatch(threads=4).clock == "perf_counter"


def test_the_overhead_of_a_sample_is_the_median_of_empty_ones() -> None:
    class Empty:
        clock: Literal["process_time"] = "process_time"

        def __init__(self) -> None:
            self.left = iter([9.0, 1.0, 3.0])

        def lap(self, operation: Callable[[], object], inner: int) -> tuple[float, float]:
            assert operation() is None
            return next(self.left), 0.0

    assert timing.overhead_ms(Empty(), laps=3) == 3.0


@pytest.mark.parametrize(("busy_percent", "threads", "fits"), [(10.0, 3, True), (60.0, 3, False), (0.0, 4, True)])
def test_several_threads_need_as_many_idle_cores(
    busy_percent: float, threads: int, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(psutil, "cpu_percent", lambda interval: busy_percent)
    monkeypatch.setattr(psutil, "cpu_count", lambda: 4)
    if fits:
        timing.require_quiet(threads)
    else:
        with pytest.raises(ContendedError, match=r"1\.6 are idle now"):
            timing.require_quiet(threads)


def test_a_stamp_is_utc_in_one_spelling() -> None:
    stamp = timing.stamp()
    assert stamp.endswith("Z")
    assert len(stamp) == len("2024-01-01T00:00:00.000Z")


def test_a_stamp_is_behind_the_last_one_whatever_the_clock_says() -> None:
    assert timing.stamp("2999-12-31T23:59:59.998Z") == "2999-12-31T23:59:59.999Z"
    assert timing.stamp("2001-01-01T00:00:00Z") > "2026"
