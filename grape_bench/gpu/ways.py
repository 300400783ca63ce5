"""Two ways to time an operation on a GPU: events around calls, and a graph of many calls."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

from grape_bench import timing
from grape_bench.timing import Operation, filling


class CaptureError(RuntimeError):
    """An operation cannot be captured in a graph."""


class Mark(Protocol):
    """A moment in a GPU's queue of work."""

    def elapsed_time(self, end: Any, /) -> float:
        """Milliseconds from here to a later moment, once both have passed."""


class Stream(Protocol):
    """A GPU's queue of work."""

    @property
    def flushed_mib(self) -> float:
        """What a flush overwrites, at least twice the L2 cache."""

    def flush(self) -> object:
        """Queue an overwrite of all that the L2 cache may hold."""

    def mark(self) -> Mark:
        """Queue a mark."""

    def wait(self) -> object:
        """Wait until all that was queued is done."""

    def capture(self, call: Operation, times: int) -> Operation:
        """Record so many calls, to be queued at once by what is returned.

        Raises:
            CaptureError: this cannot be recorded.
        """


@dataclass(frozen=True)
class Way:
    """How one operation is timed.

    Args:
        plain_ms: of a call by itself, with its launches; work_ms: of one behind flushes, without them.
        ahead: flushes that are queued first, so many that the host has queued the rest too when they end. What it takes
            to launch a call is then hidden.
        uncaptured: why no graph was made though one was wanted.
    """

    stream: Stream
    operation: Operation
    plain_ms: float
    ahead: int
    work_ms: float = 0.0
    mode: ClassVar[Literal["events", "graph"]]
    uncaptured: str | None = None

    def lap(self, inner: int) -> float:
        """Milliseconds of one call, over so many."""
        raise NotImplementedError

    def calls(self, laps: Sequence[float], sample_ms: float) -> int:
        """Calls that fill a sample."""
        raise NotImplementedError

    def around(self, work: Operation) -> tuple[Mark, Mark]:
        """Queue some work behind flushes, and marks before and after it."""
        for _ in range(self.ahead):
            self.stream.flush()
        start = self.stream.mark()
        work()
        return start, self.stream.mark()


class Events(Way):
    """A pair of events around each call."""

    mode = "events"

    def lap(self, inner: int) -> float:
        marks = [self.around(self.operation) for _ in range(inner)]
        self.stream.wait()
        return statistics.fmean(start.elapsed_time(end) for start, end in marks)

    def calls(self, laps: Sequence[float], sample_ms: float) -> int:
        return filling(laps, sample_ms)


@dataclass(frozen=True)
class Replays(Way):
    """One graph of many calls, a flush before each, less a graph of the flushes alone.

    The two run one after the other in each sample, so that a flush is as fast in the one as in the other. The operation
    is kept with all that the graph reads.

    Args:
        size: calls in the graph.
    """

    graph: Operation = timing.nothing
    flushes: Operation = timing.nothing
    size: int = 1
    mode = "graph"

    def lap(self, inner: int) -> float:
        times = max(1, inner // self.size)
        spent = [self._spent(self.graph) - self._spent(self.flushes) for _ in range(times)]
        return statistics.fmean(spent) / self.size

    def calls(self, laps: Sequence[float], sample_ms: float) -> int:
        return self.size

    def _spent(self, graph: Operation) -> float:
        start, end = self.around(graph)
        self.stream.wait()
        return start.elapsed_time(end)
