"""The only file that reads a clock: stopwatches, how long is measured, and the time of day."""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal, Protocol, TypeVar

import psutil

Operation = Callable[[], object]
Clock = Literal["process_time", "perf_counter", "cuda_event"]
Timed = TypeVar("Timed", contravariant=True)  # what a stopwatch takes: an operation, or one made ready for it

GPU_SAMPLES = 30  # at least, of each member, whatever the effort
_GPU_WARMUP, _GPU_AGREEMENT = 3, 0.01
_SLACK_CORES = 0.2


class ContendedError(RuntimeError):
    """The machine is too busy, or too unsteady, for what is asked."""


@dataclass(frozen=True)
class Effort:
    """How long a block is measured.

    Args:
        pairs: shuffled rounds, each followed by its reverse; two samples of each member.
        processes: fresh processes in which the whole block is measured.
        warmup: samples of each member that are not used.
        sample_ms: least duration of one sample; a shorter operation is called several times in it.
        agreement: the warm-up goes on, within bounds, until its last windows of `warmup` samples agree to this share.
    """

    pairs: int
    processes: int
    warmup: int
    sample_ms: float
    agreement: float = math.inf

    def on_gpu(self, processes: int) -> "Effort":
        """This effort with what a GPU needs at least.

        Args:
            processes: in which the block is measured; each takes its share of the least number of samples.
        """
        share = math.ceil(GPU_SAMPLES / processes / 2)
        warmup = max(self.warmup, _GPU_WARMUP)
        return replace(self, pairs=max(self.pairs, share), warmup=warmup, agreement=_GPU_AGREEMENT)


EFFORTS = {
    "quick": Effort(pairs=3, processes=5, warmup=2, sample_ms=5.0),
    "full": Effort(pairs=20, processes=5, warmup=5, sample_ms=20.0),
}


class Stopwatch(Protocol[Timed]):
    """Times some calls of one operation."""

    @property
    def clock(self) -> Clock:
        """The name of its clock."""

    def lap(self, operation: Timed, inner: int) -> tuple[float, float]:
        """Milliseconds of one call by its own clock, and by the wall clock, over `inner` calls in a row."""

    def calls(self, operation: Timed, laps: Sequence[float], sample_ms: float) -> int:
        """How many calls fill a sample, judged by laps of one call each."""


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

    def calls(self, operation: Operation, laps: Sequence[float], sample_ms: float) -> int:
        return filling(laps, sample_ms)


def stopwatch(threads: int = 1) -> HostStopwatch:
    """The one for operations on so many threads of a CPU."""
    return HostStopwatch("process_time" if threads == 1 else "perf_counter")


def overhead_ms(watch: Stopwatch[Operation], laps: int = 31) -> float:
    """What a stopwatch adds to one sample: the median lap around an operation that does nothing."""
    return statistics.median(watch.lap(nothing, 1)[0] for _ in range(laps))


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


def nothing() -> None:
    """The operation that does nothing."""
    return None


def filling(laps: Sequence[float], sample_ms: float) -> int:
    """Calls that fill a sample, judged by the fastest warm-up lap."""
    return max(1, round(sample_ms / max(min(laps), 1e-3))) if laps else 1


def seconds() -> float:
    """Wall seconds from an arbitrary start, for limits and progress."""
    return time.monotonic()


def pause(seconds: float) -> None:
    """Let some wall time go by."""
    time.sleep(seconds)


def cpu_seconds() -> float:
    """CPU seconds of this process."""
    return time.process_time()


def stamp(after: str = "") -> str:
    """The present moment, UTC, ISO 8601; or just after a moment behind which the clock was set back."""
    now = datetime.now(UTC)
    if after:
        now = max(now, datetime.fromisoformat(after) + timedelta(milliseconds=1))
    return now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
