"""A GPU whose time goes by as told: a queue that a slow host fills, a cache that a flush empties, and its NVML."""

from collections.abc import Callable
from dataclasses import dataclass, field

from grape_bench.gpu.ways import CaptureError
from grape_bench.gpu_reading import GpuState

COOL = GpuState(sm_mhz=1980, memory_mhz=3201, power_w=310.0, temperature_c=45, others=0)


@dataclass(frozen=True)
class Moment:
    """A mark in the queue, by the device's clock in ms."""

    at: float

    def elapsed_time(self, end: "Moment") -> float:
        return end.at - self.at


@dataclass
class SimulatedGpu:
    """A stream of work, and the two clocks around it.

    Args:
        launch_ms: in which the host queues one kernel, or one graph; flush_ms: of a flush on the device.
        slowdown: factor on all work at a time in ms.
        host, free: ms at which the host is, and at which the device has done what was queued.
    """

    launch_ms: float = 0.005
    flush_ms: float = 0.035
    slowdown: Callable[[float], float] = lambda now: 1.0
    flushed_mib: float = 120.0
    host: float = 0.0
    free: float = 0.0
    flushes: int = 0
    captures: list[int] = field(default_factory=list)
    cold: bool = False
    _recording: list[Callable[[], None]] | None = None

    def operation(self, ms: float, *, kernels: int = 1, warm: float = 0.5, waits: bool = False) -> Callable[[], None]:
        """Some kernels that take `ms` together, or a share of it where the cache still holds their data.

        Args:
            waits: the host looks at a result in between.
        """

        def call() -> None:
            if waits and self._recording is not None:
                raise CaptureError("the host waits for the device")
            for number in range(kernels):
                self._queue(lambda first=number == 0: self._kernel(ms / kernels, warm, first))
            if waits:
                self.wait()

        return call

    def flush(self) -> None:
        self._queue(self._flush)

    def mark(self) -> Moment:
        return Moment(max(self.free, self.host))

    def wait(self) -> None:
        self.host = max(self.host, self.free)

    def capture(self, call: Callable[[], object], times: int) -> Callable[[], None]:
        self._recording = recorded = []
        try:
            for _ in range(times):
                call()
        finally:
            self._recording = None
        self.captures.append(times)

        def replay() -> None:
            self.host += self.launch_ms
            for work in recorded:
                work()

        return replay

    def now(self) -> float:
        return self.host / 1e3

    def pause(self, seconds: float) -> None:
        self.host += seconds * 1e3

    def _queue(self, work: Callable[[], None]) -> None:
        if self._recording is not None:
            self._recording.append(work)
            return
        self.host += self.launch_ms
        work()

    def _kernel(self, ms: float, warm: float, first: bool) -> None:
        self._spend(ms if self.cold or not first else ms * warm)
        self.cold = False

    def _flush(self) -> None:
        self.flushes += 1
        self.cold = True
        self._spend(self.flush_ms)

    def _spend(self, ms: float) -> None:
        start = max(self.free, self.host)
        self.free = start + ms * self.slowdown(start)
