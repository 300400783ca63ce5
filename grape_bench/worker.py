"""Measure one block in this process, and tell of each member before it starts."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch

from grape_bench import gate, memory, nvml, timing
from grape_bench.attempt import Note, Reading, Result, Tell, attempt, metric, preflight
from grape_bench.backends import noting
from grape_bench.cell import AccuracyCell, Block, CostCell
from grape_bench.environment import Environment, observe, resolve, uuid
from grape_bench.gpu.stream import TorchStream
from grape_bench.gpu.timer import GpuTimer
from grape_bench.gpu_reading import GpuState
from grape_bench.origin import Origin, announce
from grape_bench.record import AccuracyReading, MemoryReading, TimeReading
from grape_bench.registry import Registry
from grape_bench.time_block import HostTimer, TimeBlock, Timer
from grape_bench.training import Checkpoints, train_and_test

__all__ = ["Finished", "Note", "Protocol", "Reading", "Result", "Tell", "measure", "prepare_process"]


@dataclass(frozen=True)
class Finished:
    """A whole block, measured or refused; nothing of it counts before."""

    results: tuple[Result, ...]
    environment: Environment
    seconds: float


@dataclass(frozen=True)
class Protocol:
    """How a block is measured.

    Args:
        effort: a key of `timing.EFFORTS`.
        device: `cpu`, `cuda` or `auto`.
        threads: of one operation; processes: in how many fresh processes a time block is measured.
        checkpoints: folder of trainings under way, None to keep none; lr: the rate that tuning chose.
        plugins: those that the command line named.
        memory_gib: what this process may hold, None for all that there is.
    """

    effort: str = "quick"
    device: str = "auto"
    threads: int = 1
    processes: int = 1
    checkpoints: str | None = None
    lr: float | None = None
    plugins: tuple[Origin, ...] = ()
    memory_gib: float | None = None


def measure(block: Block, protocol: Protocol, tell: Tell) -> Finished:
    """Measure every member of a block. A member that fails is recorded and the rest goes on."""
    announce(protocol.plugins)  # a worker need not inherit them: its server may be older, or far away
    prepare_process(protocol.threads if block.exclusive else 1)
    start = timing.seconds()
    environment = observe(protocol.device, protocol.threads)
    device = resolve(protocol.device)
    if protocol.memory_gib is not None:
        memory.bound(protocol.memory_gib, device)
    kind = Registry("metrics")[block.cells[0].metric].facts["kind"]
    if kind == "time":
        results = _time(block, protocol, device, tell)
    else:
        alone = _ALONE[str(kind)]
        results = [attempt(cell, partial(alone, cell, protocol, device, tell)) for cell in block.cells]
    bounded = tuple(_bounded(one, protocol.memory_gib) for one in results)
    return Finished(bounded, environment, timing.seconds() - start)


def _bounded(result: Result, gib: float | None) -> Result:
    if gib is None or result.fault != "oom":
        return result
    return replace(result, message=f"{result.message}; this run gives a worker {gib:g} GiB")


def prepare_process(threads: int) -> None:
    """Fix what every measurement rests on: threads, denormals, TF32, and free choice among kernels."""
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    torch.use_deterministic_algorithms(False)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def _train(cell: CostCell | AccuracyCell, protocol: Protocol, device: str, tell: Tell) -> AccuracyReading:
    assert isinstance(cell, AccuracyCell)
    if cell.tune and protocol.lr is None:
        raise RuntimeError(f"none of the learning rates {', '.join(map(str, cell.tune))} was trained")
    tell(Note(cell.id, "train"))
    kept = Checkpoints(Path(protocol.checkpoints)) if protocol.checkpoints else None
    return train_and_test(cell, device, lambda text: tell(Note(cell.id, text)), lr=protocol.lr, checkpoints=kept)


def _watch(cell: CostCell | AccuracyCell, protocol: Protocol, device: str, tell: Tell) -> MemoryReading:
    assert isinstance(cell, CostCell)
    return memory.peak(preflight(cell, device, protocol.threads, tell), device)


def _compile(cell: CostCell | AccuracyCell, protocol: Protocol, device: str, tell: Tell) -> TimeReading:
    """The first call less a later one, by the wall clock: what compiling took."""
    assert isinstance(cell, CostCell)
    tell(Note(cell.id, "compile"))
    with noting():
        gate.check(cell, device)
    torch._inductor.config.force_disable_caches = True
    operation, watch = metric(cell).prepare(cell, device), timing.HostStopwatch("perf_counter")
    first, later = (watch.lap(operation, 1)[0] for _ in range(2))
    return TimeReading(samples_ms=(first - later,), wall_ms=(first,), clock="perf_counter", threads=protocol.threads)


_ALONE: dict[str, Callable[[CostCell | AccuracyCell, Protocol, str, Tell], Reading]] = {
    "accuracy": _train,
    "memory": _watch,
    "compile": _compile,
}


def _time(block: Block, protocol: Protocol, device: str, tell: Tell) -> list[Result]:
    memory.keep_freed_memory()
    timer = _timer(device, protocol.threads)
    effort = timer.effort(timing.EFFORTS[protocol.effort], protocol.processes)
    return TimeBlock(block, device, protocol.threads, timer, tell).measure(effort)


def _timer(device: str, threads: int) -> Timer:
    return HostTimer(threads) if device == "cpu" else GpuTimer(TorchStream(), _look())


def _look() -> Callable[[], GpuState] | str:
    """What looks at the GPU, or why nothing can."""
    try:
        return nvml.Gpu(uuid()).state
    except nvml.UnreadableError as error:
        return str(error)
