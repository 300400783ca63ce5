"""Times the members of a block on a GPU, and watches it meanwhile."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from grape_bench import timing
from grape_bench.gpu import kernels
from grape_bench.gpu.stopwatch import GpuStopwatch
from grape_bench.gpu.throttling import Watch
from grape_bench.gpu.ways import Stream, Way
from grape_bench.gpu_reading import GpuReading, GpuState
from grape_bench.record import TimeReading
from grape_bench.rounds import interleave, once
from grape_bench.timing import Effort, Operation

LAUNCH_BOUND = 1.5  # times its work on the device, that a plain call takes
_LOAD_MS, _LOAD_S = 40.0, 0.01  # flushes that are queued before a look at the GPU, and how long they run before it
_EMPTY_LAPS = 7


@dataclass
class GpuTimer:
    """Interleaved rounds on a GPU: at least 30 samples over all processes, each pair of rounds watched.

    Args:
        look: at the GPU's state, or why nobody can; kernels: a note for each operation of what runs in a call of it.
        now: wall seconds; pause: lets some go by.
    """

    stream: Stream
    look: Callable[[], GpuState] | str
    kernels: Callable[[Sequence[Operation]], Sequence[str]] = kernels.said
    now: Callable[[], float] = timing.seconds
    pause: Callable[[float], None] = timing.pause

    def effort(self, effort: Effort, processes: int) -> Effort:
        return effort.on_gpu(processes)

    def time(
        self, operations: Sequence[Operation], effort: Effort, *, seed: int, before: Callable[[int], None]
    ) -> list[TimeReading]:
        stopwatch = GpuStopwatch(self.stream, self.now)
        ways = stopwatch.ready(operations, effort.sample_ms, before)
        watch = None if isinstance(self.look, str) else Watch(self.look, partial(self._load, stopwatch), self.pause)
        readings = interleave(ways, stopwatch, effort, seed=seed, before=before, guard=watch or once)
        overhead = _overhead_ms(ways, stopwatch, effort.sample_ms)
        return [
            one.model_copy(update={"gpu": self._reading(one, way, watch), "overhead_ms": overhead})
            for one, way in zip(readings, ways, strict=True)
        ]

    def notes(self, operations: Sequence[Operation]) -> list[tuple[str, ...]]:
        return [(note,) for note in self.kernels(operations)]

    def _load(self, stopwatch: GpuStopwatch) -> None:
        """Queue work for longer than a look takes, and let it begin: an idle GPU lowers its clocks."""
        for _ in range(math.ceil(_LOAD_MS / stopwatch.flush_ms)):
            self.stream.flush()
        self.pause(_LOAD_S)

    def _reading(self, reading: TimeReading, way: Way, watch: Watch | None) -> GpuReading:
        return GpuReading(
            mode=way.mode,
            flushed_mib=self.stream.flushed_mib,
            plain_ms=way.plain_ms,
            launch_bound=way.plain_ms > LAUNCH_BOUND * statistics.median(reading.samples_ms),
            uncaptured=way.uncaptured,
            states=tuple(watch.states) if watch else (),
            unwatched=self.look if isinstance(self.look, str) else None,
            discarded=tuple(watch.discarded) if watch else (),
        )


def _overhead_ms(ways: Sequence[Way], stopwatch: GpuStopwatch, sample_ms: float) -> float:
    """The median lap around nothing, in the mode of the block."""
    way: Way = stopwatch.events(timing.nothing)
    if any(one.mode == "graph" for one in ways):
        way = stopwatch.captured(way, sample_ms)
    return statistics.median(way.lap(1) for _ in range(_EMPTY_LAPS))
