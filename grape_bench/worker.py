"""Measure one block in this process, and tell of each member before it starts."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from grape_bench import gate, memory, timing
from grape_bench.cell import AccuracyCell, Block, CostCell
from grape_bench.environment import Environment, observe, resolve
from grape_bench.errors import Unsupported, UserError
from grape_bench.metrics import Metric, Operation
from grape_bench.model import named_generator
from grape_bench.record import AccuracyReading, Fault, MemoryReading, Role, Status, TimeReading
from grape_bench.registry import Registry
from grape_bench.training import Checkpoints, NanLossError, train_and_test


@dataclass(frozen=True)
class Note:
    """What is done now, for progress, and to know whom to blame if the process dies."""

    cell: str
    text: str


@dataclass(frozen=True)
class Result:
    """The end of one attempt at one cell."""

    cell: CostCell | AccuracyCell
    status: Status
    reading: TimeReading | MemoryReading | AccuracyReading | None = None
    fault: Fault | None = None
    message: str | None = None
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
        threads: of one operation.
        checkpoints: folder of trainings under way, None to keep none; lr: the rate that tuning chose.
    """

    effort: str = "quick"
    device: str = "auto"
    threads: int = 1
    checkpoints: str | None = None
    lr: float | None = None


def measure(block: Block, protocol: Protocol, tell: Tell) -> Finished:
    """Measure every member of a block. A member that fails is recorded and the rest goes on."""
    prepare_process(protocol.threads)
    start = timing.seconds()
    environment = observe(protocol.device, protocol.threads)
    device = resolve(protocol.device)
    first = block.cells[0]
    if isinstance(first, AccuracyCell):
        results = [_attempt(cell, lambda cell=cell: _train(cell, protocol, device, tell)) for cell in block.cells]
    elif Registry("metrics")[first.metric].facts["kind"] == "memory":
        results = [_attempt(cell, lambda cell=cell: _watch(cell, device, tell)) for cell in block.cells]
    else:
        results = _time(block, protocol, device, tell)
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


def _watch(cell: CostCell | AccuracyCell, device: str, tell: Tell) -> MemoryReading:
    assert isinstance(cell, CostCell)
    return memory.peak(_preflight(cell, device, tell), device)


def _time(block: Block, protocol: Protocol, device: str, tell: Tell) -> list[Result]:
    """Preflight each member alone, then time the sound ones in interleaved rounds, with the baseline once more."""
    effort, refused, sound = timing.EFFORTS[protocol.effort], list[Result](), list[CostCell]()
    operations: list[Operation] = []
    for cell in block.cells:
        assert isinstance(cell, CostCell)
        result = _attempt(cell, lambda cell=cell: operations.append(_preflight(cell, device, tell)))
        if result.status == "ok":
            sound.append(cell)
        else:
            refused.append(result)
    roles: list[Role] = ["member"] * len(sound)
    base = block.cells[block.baseline] if block.baseline is not None else None
    if isinstance(base, CostCell) and base in sound and len(sound) > 1:
        sound.append(base)
        operations.append(_metric(base).prepare(base, device))
        roles.append("control")
    seed = named_generator(0, block.id).initial_seed()
    readings = timing.interleave(
        operations,
        timing.stopwatch(device),
        effort,
        seed=seed,
        before=lambda index: tell(Note(sound[index].id, "time")),
    )
    timed = [Result(cell, "ok", reading, role=role) for cell, reading, role in zip(sound, readings, roles, strict=True)]
    return refused + timed


def _preflight(cell: CostCell, device: str, tell: Tell) -> Operation:
    tell(Note(cell.id, "gate"))
    gate.check(cell, device)
    operation = _metric(cell).prepare(cell, device)
    operation()
    return operation


def _metric(cell: CostCell) -> Metric:
    metric: Metric = Registry("metrics")[cell.metric].load()()
    return metric


def _attempt(cell: CostCell | AccuracyCell, action: Callable[[], object]) -> Result:
    """Run one action on a cell; whatever goes wrong becomes its result."""
    try:
        made = action()
    except Exception as error:  # the runner's own rule: one failure stops one cell, and is recorded
        return _refusal(cell, error)
    reading = made if isinstance(made, TimeReading | MemoryReading | AccuracyReading) else None
    return Result(cell, "ok", reading)


def _refusal(cell: CostCell | AccuracyCell, error: Exception) -> Result:
    if isinstance(error, Unsupported):
        return Result(cell, "skipped", message=str(error))
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = "" if isinstance(error, UserError | gate.GateError | NanLossError) else f" ({place.name}, line {place.lineno})"
    return Result(cell, "failed", fault=_fault(error), message=f"{type(error).__name__}: {error}{where}")


def _fault(error: Exception) -> Fault:
    if isinstance(error, gate.GateError):
        return "gate"
    if isinstance(error, NanLossError):
        return "nan"
    text = str(error).lower()
    # torch's CPU allocator raises a plain RuntimeError.
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in text:
        return "oom"
    return "error"
