"""What a reading says of the GPU that it was taken on."""

from typing import Literal

from grape_bench.cell import Frozen


class GpuState(Frozen):
    """A GPU under load at one moment, as NVML tells; None where it does not.

    Args:
        sm_mhz, memory_mhz: clocks; power_w: what it draws; temperature_c: of the chip.
        reasons: why its clocks are lower than they could be.
        others: processes beside this one that compute on it.
    """

    sm_mhz: int | None = None
    memory_mhz: int | None = None
    power_w: float | None = None
    temperature_c: int | None = None
    reasons: tuple[str, ...] = ()
    others: int | None = None


class GpuReading(Frozen):
    """How times were taken on a GPU. No sample holds what the host takes to launch a call.

    Args:
        mode: `events`, a pair of events around each call; `graph`, replays of one graph of many calls, less what the
            flushes in it take.
        flushed_mib: overwritten before each call, at least twice the L2 cache.
        plain_ms: median of a call by itself, with its launches; launch_bound: that is much longer than a sample.
        uncaptured: why a graph was wanted and not made.
        states: before the first pair of rounds that counts, and after each; unwatched: why there are none.
        discarded: why pairs of rounds were measured again, a sentence each.
    """

    mode: Literal["events", "graph"]
    flushed_mib: float
    plain_ms: float
    launch_bound: bool
    uncaptured: str | None = None
    states: tuple[GpuState, ...] = ()
    unwatched: str | None = None
    discarded: tuple[str, ...] = ()
