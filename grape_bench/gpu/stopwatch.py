"""Times operations on a GPU, each in the way that suits its block."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from grape_bench import timing
from grape_bench.gpu.ways import CaptureError, Events, Replays, Stream, Way
from grape_bench.rounds import blaming
from grape_bench.timing import Operation

SHORT_MS = 0.1  # below it the gaps between launches, and the events themselves, weigh too much
_LOOKS, _FLUSHES = 3, 16
_MOST_CALLS = 200  # in one graph
_MOST_AHEAD_MS = 30.0  # of flushes before a call; a queue of launches holds little more


@dataclass
class GpuStopwatch:
    """Times operations that were made ready for it.

    Args:
        now: wall seconds.
    """

    stream: Stream
    now: Callable[[], float] = timing.seconds
    clock: Literal["cuda_event"] = "cuda_event"

    def lap(self, operation: Way, inner: int) -> tuple[float, float]:
        start = self.now()
        own = operation.lap(inner)
        return own, (self.now() - start) * 1e3 / inner

    def calls(self, operation: Way, laps: Sequence[float], sample_ms: float) -> int:
        return operation.calls(laps, sample_ms)

    def ready(self, operations: Sequence[Operation], sample_ms: float, before: Callable[[int], None]) -> list[Way]:
        """How each operation of a block is timed: where one is short, all are captured, so that they are timed alike.

        Raises:
            MemberError: an operation failed.
        """
        ways: list[Way] = []
        for index, operation in enumerate(operations):
            before(index)
            with blaming(index):
                ways.append(self.events(operation))
        if all(one.work_ms >= SHORT_MS for one in ways):
            return ways
        for index, way in enumerate(ways):
            before(index)
            with blaming(index):
                ways[index] = self.captured(way, sample_ms)
        return ways

    def events(self, operation: Operation) -> Events:
        """It with events around each call."""
        operation()
        plain, host = zip(*(self._alone(operation) for _ in range(_LOOKS)), strict=True)
        ahead = _ahead(statistics.median(host), self.flush_ms)
        way = Events(self.stream, operation, statistics.median(plain), ahead)
        return replace(way, work_ms=statistics.median(way.lap(1) for _ in range(_LOOKS)))

    def captured(self, way: Way, sample_ms: float) -> Way:
        """It as a graph that fills a sample, or as it was, with the reason."""
        size = max(1, min(_MOST_CALLS, round(sample_ms / (way.work_ms + self.flush_ms))))

        def call() -> None:
            self.stream.flush()
            way.operation()

        try:
            graph, flushes = self.stream.capture(call, size), self.stream.capture(self.stream.flush, size)
        except CaptureError as error:
            return replace(way, uncaptured=str(error))
        graph()  # the first launch also uploads it
        ahead = _ahead(self._alone(graph)[1], self.flush_ms)
        return Replays(
            self.stream, way.operation, way.plain_ms, ahead, way.work_ms, graph=graph, flushes=flushes, size=size
        )

    @cached_property
    def flush_ms(self) -> float:
        """Milliseconds of one flush."""

        def many() -> None:
            for _ in range(_FLUSHES):
                self.stream.flush()

        many()
        return max(self._alone(many)[0] / _FLUSHES, 1e-3)

    def _alone(self, operation: Operation) -> tuple[float, float]:
        """Milliseconds of one call on an idle device, by events; and those in which the host queued it."""
        self.stream.wait()
        start, began = self.stream.mark(), self.now()
        operation()
        queued, end = self.now(), self.stream.mark()
        self.stream.wait()
        return start.elapsed_time(end), (queued - began) * 1e3


def _ahead(host_ms: float, flush_ms: float) -> int:
    """Flushes that take longer than the host does."""
    return 1 + math.ceil(min(host_ms, _MOST_AHEAD_MS) / flush_ms)
