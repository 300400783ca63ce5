"""The only file that touches a clock or a device event: how members of a block are timed."""

import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, Protocol

import psutil

from grape_bench.record import TimeReading

Operation = Callable[[], object]


_SLACK_CORES = 0.2


class ContendedError(RuntimeError):
    """The machine is too busy for what is asked."""


@dataclass(frozen=True)
class Effort:
    """How long a block is measured.

    Args:
        pairs: shuffled rounds, each followed by its reverse; two samples of each member.
        processes: fresh processes in which the whole block is measured.
        warmup: samples of each member that are not used.
        sample_ms: least duration of one sample; a shorter operation is called several times in it.
    """

    pairs: int
    processes: int
    warmup: int
    sample_ms: float


EFFORTS = {
    "quick": Effort(pairs=3, processes=5, warmup=2, sample_ms=5.0),
    "full": Effort(pairs=20, processes=5, warmup=5, sample_ms=20.0),
}


class Stopwatch(Protocol):
    """Times some calls of one operation."""

    @property
    def clock(self) -> Literal["process_time", "perf_counter", "cuda_event"]:
        """The name of its clock."""

    def lap(self, operation: Operation, inner: int) -> tuple[float, float]:
        """Milliseconds of one call by its own clock, and by the wall clock, over `inner` calls in a row."""


@dataclass(frozen=True)
class HostStopwatch:
    """CPU time of this process, or wall time where its threads share the work.

    On a shared machine a ratio of CPU times spreads by a tenth of what one of wall times does. CPU time also counts
    threads that wait in a loop, so it is no measure of more than one.
    """

    clock: Literal["process_time", "perf_counter"] = "process_time"

    def lap(self, operation: Operation, inner: int) -> tuple[float, float]:
        wall, cpu = time.perf_counter_ns(), time.process_time_ns()
        for _ in range(inner):
            operation()
        cpu, wall = time.process_time_ns() - cpu, time.perf_counter_ns() - wall
        return (cpu if self.clock == "process_time" else wall) / 1e6 / inner, wall / 1e6 / inner


@dataclass
class CudaStopwatch:
    """CUDA events around the calls, with the L2 cache flushed before them."""

    clock: Literal["cuda_event"] = "cuda_event"
    _flush: object = field(default=None, repr=False)

    def lap(self, operation: Operation, inner: int) -> tuple[float, float]:
        import torch

        if self._flush is None:
            size = 2 * torch.cuda.get_device_properties().L2_cache_size
            self._flush = torch.empty(size, dtype=torch.int8, device="cuda")
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        assert isinstance(self._flush, torch.Tensor)
        self._flush.zero_()
        torch.cuda.synchronize()
        wall = time.perf_counter_ns()
        start.record()
        for _ in range(inner):
            operation()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) / inner, (time.perf_counter_ns() - wall) / 1e6 / inner


def stopwatch(device: str, threads: int = 1) -> Stopwatch:
    """The one for `cpu` or `cuda`, and for operations on so many threads."""
    if device == "cuda":
        return CudaStopwatch()
    return HostStopwatch("process_time" if threads == 1 else "perf_counter")


def overhead_ms(watch: Stopwatch, laps: int = 31) -> float:
    """What a stopwatch adds to one sample: the median lap around an operation that does nothing."""
    return statistics.median(watch.lap(_nothing, 1)[0] for _ in range(laps))


def require_quiet(threads: int, seconds: float = 0.5) -> None:
    """Make sure that wall time on several threads means something.

    Raises:
        ContendedError: other processes leave fewer idle cores than there are threads.
    """
    busy = psutil.cpu_percent(interval=seconds) / 100 * (psutil.cpu_count() or 1)
    idle = (psutil.cpu_count() or 1) - busy
    if idle < threads - _SLACK_CORES:
        raise ContendedError(
            f"{threads} threads are timed by the wall clock, which needs as many idle cores; {idle:.1f} are idle now"
        )


def _nothing() -> None:
    return None


def interleave(
    operations: Sequence[Operation], watch: Stopwatch, effort: Effort, *, seed: int, before: Callable[[int], None]
) -> list[TimeReading]:
    """Time operations in shuffled rounds, each round followed by its reverse.

    A machine that drifts in a straight line then drifts alike for all: each pair of rounds has the same mean time
    for every member. Sample r of one reading was taken in the same round as sample r of every other.

    Args:
        seed: of the shuffles.
        before: is told the index of the operation that comes next, outside the timed region.
    """
    warmup = [[watch.lap(operation, 1)[0] for _ in range(effort.warmup)] for operation in operations]
    inner = [_inner(laps, effort.sample_ms) for laps in warmup]
    samples: list[list[tuple[float, float]]] = [[] for _ in operations]
    shuffle = random.Random(seed)
    for _ in range(effort.pairs):
        order = shuffle.sample(range(len(operations)), len(operations))
        for index in order + order[::-1]:
            before(index)
            samples[index].append(watch.lap(operations[index], inner[index]))
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


def _inner(laps: Sequence[float], sample_ms: float) -> int:
    """Calls that fill a sample, judged by the fastest warm-up lap."""
    return max(1, round(sample_ms / max(min(laps), 1e-3))) if laps else 1


def seconds() -> float:
    """Wall seconds from an arbitrary start, for limits and progress."""
    return time.monotonic()


def cpu_seconds() -> float:
    """CPU seconds of this process."""
    return time.process_time()


def stamp() -> str:
    """The present moment, UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
