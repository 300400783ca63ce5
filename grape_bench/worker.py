"""Measure one block in this process, and tell of each member before it starts."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch

from grape_bench import gate, memory, timing
from grape_bench.backends import noting
from grape_bench.cell import AccuracyCell, Block, CostCell
from grape_bench.environment import Environment, observe, resolve
from grape_bench.errors import Unsupported, UserError
from grape_bench.metrics import Metric, Operation
from grape_bench.origin import Origin, announce
from grape_bench.record import AccuracyReading, Fault, MemoryReading, Role, Status, TimeReading
from grape_bench.registry import Registry
from grape_bench.training import Checkpoints, NanLossError, train_and_test

Reading = TimeReading | MemoryReading | AccuracyReading

_SENTINEL_SIZE = 192
_SAYS_ALL = (UserError, gate.GateError, NanLossError, timing.ContendedError)  # a message that needs no place


@dataclass(frozen=True)
class Note:
    """What is done now, for progress, and to know whom to blame if the process dies."""

    cell: str
    text: str


@dataclass(frozen=True)
class Result:
    """The end of one attempt at one cell; its notes are what the backend said of how it computes."""

    cell: CostCell | AccuracyCell
    status: Status
    reading: Reading | None = None
    fault: Fault | None = None
    message: str | None = None
    role: Role = "member"
    notes: tuple[str, ...] = ()


class _Sound(NamedTuple):
    """A member that may be timed."""

    cell: CostCell
    operation: Operation
    notes: tuple[str, ...]
    role: Role = "member"


@dataclass(frozen=True)
class Finished:
    """A whole block, measured or refused; nothing of it counts before."""

    results: tuple[Result, ...]
    environment: Environment
    seconds: float


Tell = Callable[[Note], None]


@dataclass(frozen=True)
class Protocol:
    """How a block is measured.

    Args:
        effort: a key of `timing.EFFORTS`.
        device: `cpu`, `cuda` or `auto`.
        threads: of one operation; processes: in how many fresh processes a time block is measured.
        checkpoints: folder of trainings under way, None to keep none; lr: the rate that tuning chose.
        plugins: those that the command line named.
    """

    effort: str = "quick"
    device: str = "auto"
    threads: int = 1
    processes: int = 1
    checkpoints: str | None = None
    lr: float | None = None
    plugins: tuple[Origin, ...] = ()


def measure(block: Block, protocol: Protocol, tell: Tell) -> Finished:
    """Measure every member of a block. A member that fails is recorded and the rest goes on."""
    announce(protocol.plugins)  # a worker need not inherit them: its server may be older, or far away
    prepare_process(protocol.threads if block.exclusive else 1)
    start = timing.seconds()
    environment = observe(protocol.device, protocol.threads)
    device = resolve(protocol.device)
    kind = Registry("metrics")[block.cells[0].metric].facts["kind"]
    if kind == "time":
        results = _time(block, protocol, device, tell)
    else:
        alone = _ALONE[str(kind)]
        results = [_attempt(cell, partial(alone, cell, protocol, device, tell)) for cell in block.cells]
    return Finished(tuple(results), environment, timing.seconds() - start)


def prepare_process(threads: int) -> None:
    """Fix what every measurement rests on: threads, denormals, TF32."""
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def _train(cell: CostCell | AccuracyCell, protocol: Protocol, device: str, tell: Tell) -> AccuracyReading:
    assert isinstance(cell, AccuracyCell)
    if cell.tune and protocol.lr is None:
        raise RuntimeError(f"none of the learning rates {', '.join(map(str, cell.tune))} could be trained")
    tell(Note(cell.id, "train"))
    kept = Checkpoints(Path(protocol.checkpoints)) if protocol.checkpoints else None
    return train_and_test(cell, device, lambda text: tell(Note(cell.id, text)), lr=protocol.lr, checkpoints=kept)


def _watch(cell: CostCell | AccuracyCell, protocol: Protocol, device: str, tell: Tell) -> MemoryReading:
    assert isinstance(cell, CostCell)
    return memory.peak(_preflight(cell, protocol, device, tell), device)


def _compile(cell: CostCell | AccuracyCell, protocol: Protocol, device: str, tell: Tell) -> TimeReading:
    """The first call less a later one, by the wall clock: what compiling took."""
    assert isinstance(cell, CostCell)
    tell(Note(cell.id, "compile"))
    with noting():
        gate.check(cell, device)
    torch._inductor.config.force_disable_caches = True
    operation, watch = _metric(cell).prepare(cell, device), timing.stopwatch("cpu", threads=2)
    first, later = (watch.lap(operation, 1)[1] for _ in range(2))
    return TimeReading(samples_ms=(first - later,), wall_ms=(first,), clock="perf_counter", threads=protocol.threads)


_ALONE: dict[str, Callable[[CostCell | AccuracyCell, Protocol, str, Tell], Reading]] = {
    "accuracy": _train,
    "memory": _watch,
    "compile": _compile,
}


def _time(block: Block, protocol: Protocol, device: str, tell: Tell) -> list[Result]:
    """Preflight each member alone, then time the sound ones in interleaved rounds, with the baseline once more."""
    memory.keep_freed_memory()
    sound, refused = list[_Sound](), list[Result]()
    for cell in block.cells:
        assert isinstance(cell, CostCell)
        try:
            with noting() as notes:
                sound.append(_Sound(cell, _preflight(cell, protocol, device, tell), tuple(notes)))
        except Exception as error:  # the runner's own rule: one failure stops one cell, and is recorded
            refused.append(_refusal(cell, error))
    base = block.cells[block.baseline] if block.baseline is not None else None
    twins = [one for one in sound if one.cell == base]
    sound += [one._replace(operation=_metric(one.cell).prepare(one.cell, device), role="control") for one in twins]
    return refused + (_rounds(sound, block, protocol, device, tell) if sound else [])


def _rounds(sound: list[_Sound], block: Block, protocol: Protocol, device: str, tell: Tell) -> list[Result]:
    watch = timing.stopwatch(device, protocol.threads)
    names = [one.cell.id for one in sound] + [""]  # the last one is the sentinel, which is no cell
    *readings, sentinel = timing.interleave(
        [one.operation for one in sound] + [_sentinel(device)],
        watch,
        timing.EFFORTS[protocol.effort],
        seed=int(block.id[:8], 16),
        before=lambda index: tell(Note(names[index], "time")),
    )
    more = {"sentinel_ms": sentinel.samples_ms, "overhead_ms": timing.overhead_ms(watch), "threads": protocol.threads}
    return [
        Result(one.cell, "ok", reading.model_copy(update=more), role=one.role, notes=one.notes)
        for one, reading in zip(sound, readings, strict=True)
    ]


def _sentinel(device: str) -> Operation:
    """A fixed multiplication of two square matrices."""
    matrix = torch.ones(_SENTINEL_SIZE, _SENTINEL_SIZE, device=device)
    return lambda: matrix @ matrix


def _preflight(cell: CostCell, protocol: Protocol, device: str, tell: Tell) -> Operation:
    tell(Note(cell.id, "gate"))
    if protocol.threads > 1 and device == "cpu":
        timing.require_quiet(protocol.threads)
    metric = _metric(cell)
    with noting():  # the gate takes gradients and fills caches, and what it is computed by is not what is measured
        gate.check(cell, device, decodes=metric.decodes, backward=metric.backward)
        operation = metric.prepare(cell, device)
    operation()
    return operation


def _metric(cell: CostCell) -> Metric:
    metric: Metric = Registry("metrics")[cell.metric].load()()
    return metric


def _attempt(cell: CostCell | AccuracyCell, action: Callable[[], Reading]) -> Result:
    """Run one action on a cell; whatever goes wrong becomes its result."""
    try:
        with noting() as notes:
            reading = action()
        return Result(cell, "ok", reading, notes=tuple(notes))
    except Exception as error:  # as above
        return _refusal(cell, error)


def _refusal(cell: CostCell | AccuracyCell, error: Exception) -> Result:
    if isinstance(error, Unsupported):
        return Result(cell, "skipped", message=str(error))
    message = f"{type(error).__name__}: {error}"
    if not isinstance(error, _SAYS_ALL):
        place = traceback.extract_tb(error.__traceback__)[-1]
        message += f" ({place.name}, line {place.lineno})"
    return Result(cell, "failed", fault=_fault(error), message=message)


def _fault(error: Exception) -> Fault:
    if isinstance(error, gate.GateError):
        return "gate"
    if isinstance(error, NanLossError):
        return "nan"
    if isinstance(error, timing.ContendedError):
        return "throttled"
    text = str(error).lower()
    # torch's CPU allocator raises a plain RuntimeError.
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in text:
        return "oom"
    return "error"
