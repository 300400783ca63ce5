"""The only file that reads memory: the peak of one call, in a process of its own."""

import ctypes
import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from grape_bench.record import MemoryReading

Operation = Callable[[], object]

_MIB = 2**20
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD, _M_MMAP_MAX = -1, -2, -3, -4  # glibc's numbers for mallopt
_SMALL = 128 * 2**10  # bytes
_CONFIGURED = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")  # the newer name first
_PAD = 64 * 2**20  # bytes by which the heap grows beyond what is asked for


class Allocator(Protocol):
    """What is asked of CUDA's caching allocator; all sizes are bytes."""

    def synchronize(self) -> None: ...

    def empty_cache(self) -> None: ...

    def reset_peak_memory_stats(self) -> None: ...

    def memory_allocated(self) -> int: ...

    def max_memory_allocated(self) -> int: ...

    def max_memory_reserved(self) -> int: ...

    def get_allocator_backend(self) -> str: ...


def bound(gib: float, device: str) -> None:
    """Let no allocation of this process take it beyond a limit; one that would fails as if memory had run out.

    On a GPU it is the GPU's memory that is bounded. On a CPU it is private writable memory: what is mapped, of which
    CUDA and threads reserve far more than they use, and what is resident, which comes too late to refuse, are not.
    """
    if device == "cuda":
        import torch

        whole = torch.cuda.get_device_properties().total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, gib * 2**30 / whole))
    else:
        import resource  # unknown to Windows

        limit, (_, highest) = int(gib * 2**30), resource.getrlimit(resource.RLIMIT_DATA)
        if highest != resource.RLIM_INFINITY:
            limit = min(limit, highest)  # of a scheduler, which nobody may raise
        resource.setrlimit(resource.RLIMIT_DATA, (limit, highest))


def peak(operation: Operation, device: str) -> MemoryReading:
    """Peak memory of one call over what was allocated before it.

    Call it in a fresh process: on a CPU it fixes the allocator's mmap threshold, which slows later calls.

    Args:
        operation: returns what it made, so that outputs are held until the peak is known.
        device: `cpu` or `cuda`.
    """
    if device == "cpu":
        return _cpu_peak(operation)
    import torch

    return cuda_peak(operation, torch.cuda, configured())


def release(device: str) -> None:
    """Give back what a member that failed has left behind."""
    gc.collect()
    if device == "cuda":
        import torch

        torch.cuda.empty_cache()


def _cpu_peak(operation: Operation) -> MemoryReading:
    _fix_threshold()
    operation()  # once to warm up: the libraries' own buffers stay, and are not the operation's
    resident = _resident_peak(operation)
    return MemoryReading(peak_mib=_profiled_peak(operation) / _MIB, resident_mib=resident)


def _profiled_peak(operation: Operation) -> int:
    """Bytes: the running sum of torch's allocations and frees, at its highest."""
    from torch.profiler import ProfilerActivity, profile

    gc.collect()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        held = operation()
    del held
    events = [event for event in profiler.profiler.kineto_results.events() if event.name() == "[memory]"]
    running = highest = 0
    for event in sorted(events, key=lambda one: one.start_ns()):
        running += event.nbytes()
        highest = max(highest, running)
    return highest


def _resident_peak(operation: Operation) -> float | None:
    """MiB: the kernel's high-water mark of resident memory; None where it cannot be reset."""
    gc.collect()
    _trim()
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        before = _status("VmRSS")
        held = operation()
        highest = _status("VmHWM")
    except (OSError, KeyError):
        return None
    del held
    return (highest - before) / 1024


def cuda_peak(operation: Operation, allocator: Allocator, config: str = "") -> MemoryReading:
    """Peak of the caching allocator over what it had given out before the call, and all that it holds beside it.

    Inputs and weights are there before, and so are the workspaces that libraries take in a first call. No graph is
    captured in this process and no cache flushed, since both would take memory of their own.

    Args:
        allocator: `torch.cuda`, or what stands for it.
        config: what the environment says of it.
    """
    operation()
    allocator.synchronize()
    gc.collect()
    allocator.empty_cache()
    allocator.reset_peak_memory_stats()
    base = allocator.memory_allocated()
    held = operation()
    allocator.synchronize()
    del held
    return MemoryReading(
        peak_mib=(allocator.max_memory_allocated() - base) / _MIB,
        reserved_mib=allocator.max_memory_reserved() / _MIB,
        allocator=f"{allocator.get_allocator_backend()}, {config or 'as it comes'}",
    )


def configured() -> str:
    """What the environment tells the caching allocator, in its own words."""
    return next((os.environ[name] for name in _CONFIGURED if os.environ.get(name)), "")


def _status(key: str) -> int:
    """KiB of one line of /proc/self/status."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    rows = {line.split(":")[0]: line.split() for line in lines}
    return int(rows[key][1])


def keep_freed_memory() -> None:
    """Let the C allocator reuse what was freed instead of returning it, as it comes to do in a long run.

    For a process that is timed. glibc moves its thresholds as it frees, so by chance one process pays for fresh pages
    in every call and another never does: ratios of large biases differed by 28 % from process to process. A block of
    32 MiB or more that finds no room in the heap is mapped anew in each call, whatever the threshold, and its pages
    cost seven times what writing them does: `alibi` at that size took 1.4 of no bias in one run and 2.5 in the next.
    So nothing is mapped, and all comes from one heap.
    """
    _libc("mallopt", _M_MMAP_MAX, 0)
    _libc("mallopt", _M_TRIM_THRESHOLD, 2**31 - 1)
    _libc("mallopt", _M_TOP_PAD, _PAD)


def _fix_threshold() -> None:
    # glibc raises its threshold as it frees large blocks, and keeps up to 32 MiB of them resident: the mark lies then.
    _libc("mallopt", _M_MMAP_THRESHOLD, _SMALL)


def _trim() -> None:
    _libc("malloc_trim", 0)


def _libc(function: str, *arguments: int) -> None:
    try:
        getattr(ctypes.CDLL(None), function)(*arguments)
    except (AttributeError, OSError):  # another C library: the mark is then rougher, and is only the check
        return
