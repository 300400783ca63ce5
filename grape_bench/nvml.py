"""What NVML tells of a GPU: driver, power limit, clocks, heat, and who computes on it."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import pynvml

from grape_bench.gpu_reading import GpuState

T = TypeVar("T")

# Bits of `nvmlDeviceGetCurrentClocksEventReasons`.
REASONS = {
    0x1: "idle",
    0x2: "application clocks",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
    0x100: "display clocks",
}
POWER_CAP = REASONS[0x4]
HARMFUL = frozenset(REASONS[bit] for bit in (0x8, 0x20, 0x40, 0x80))


class UnreadableError(RuntimeError):
    """NVML does not answer here."""


class Gpu:
    """One GPU as NVML sees it.

    Args:
        uuid: as torch gives it, with or without `GPU-` before it.
        library: `pynvml`, or what stands for it.

    Raises:
        UnreadableError: there is no NVML, or it does not know this GPU.
    """

    def __init__(self, uuid: str, library: Any = pynvml):
        self._nvml = library
        try:
            library.nvmlInit()
            name = uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
            self._handle = library.nvmlDeviceGetHandleByUUID(name)
        except pynvml.NVMLError as error:
            raise UnreadableError(f"NVML does not answer: {error}") from None

    def state(self) -> GpuState:
        """Its state at this moment; what it does not tell is None."""
        nvml, handle = self._nvml, self._handle
        power = self._ask(lambda: nvml.nvmlDeviceGetPowerUsage(handle))
        return GpuState(
            sm_mhz=self._ask(lambda: nvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)),
            memory_mhz=self._ask(lambda: nvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM)),
            power_w=None if power is None else power / 1000,
            temperature_c=self._ask(lambda: nvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)),
            reasons=named(self._ask(lambda: nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)) or 0),
            others=self._others(),
        )

    def lowered_limit_w(self) -> float | None:
        """The power limit in watts where somebody set it lower than the board's own, else None."""
        limit = self._ask(lambda: self._nvml.nvmlDeviceGetEnforcedPowerLimit(self._handle))
        usual = self._ask(lambda: self._nvml.nvmlDeviceGetPowerManagementDefaultLimit(self._handle))
        return limit / 1000 if limit is not None and usual is not None and limit < usual else None

    def _others(self) -> int | None:
        found = self._ask(lambda: self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle))
        if found is None:
            return None
        own = {one.pid for one in found} & {os.getpid()}
        # In a container processes have other numbers than NVML gives. One of them is this one all the same.
        return len(found) - 1 if found and not own else len(found) - len(own)

    def _ask(self, question: Callable[[], T]) -> T | None:
        try:
            return question()
        except pynvml.NVMLError:  # not every board knows every answer
            return None


def named(bits: int) -> tuple[str, ...]:
    """The names of the reasons that are set."""
    return tuple(name for bit, name in REASONS.items() if bits & bit)


def driver(library: Any = pynvml) -> str | None:
    """The driver's version, None without NVML."""
    try:
        library.nvmlInit()
        return str(library.nvmlSystemGetDriverVersion())
    except pynvml.NVMLError:
        return None
