"""One attempt at one cell: what is told of it, what comes of it, and how a failure is put."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass

import torch

from grape_bench import gate, timing
from grape_bench.backends import noting
from grape_bench.cell import AccuracyCell, CostCell
from grape_bench.errors import Unsupported, UserError
from grape_bench.metrics import Metric, Operation
from grape_bench.record import AccuracyReading, Fault, MemoryReading, Role, Status, TimeReading
from grape_bench.registry import Registry
from grape_bench.trainer import NanLossError

Reading = TimeReading | MemoryReading | AccuracyReading

_SAYS_ALL = (UserError, gate.GateError, NanLossError, timing.ContendedError)  # a message that needs no place


@dataclass(frozen=True)
class Note:
    """What is done now, for progress, and to know whom to blame if the process dies."""

    cell: str
    text: str


Tell = Callable[[Note], None]


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


def attempt(cell: CostCell | AccuracyCell, action: Callable[[], Reading]) -> Result:
    """Run one action on a cell; whatever goes wrong becomes its result."""
    try:
        with noting() as notes:
            reading = action()
        return Result(cell, "ok", reading, notes=tuple(notes))
    except Exception as error:  # the runner's own rule: one failure stops one cell, and is recorded
        return refusal(cell, error)


def preflight(cell: CostCell, device: str, threads: int, tell: Tell) -> Operation:
    """The operation of a cell that passed its gate, called once.

    Raises:
        Unsupported, GateError, ContendedError: why it may not be measured.
    """
    tell(Note(cell.id, "gate"))
    if threads > 1 and device == "cpu":
        timing.require_quiet(threads)
    chosen = metric(cell)
    with noting():  # the gate takes gradients and fills caches, and what it is computed by is not what is measured
        gate.check(cell, device, decodes=chosen.decodes, backward=chosen.backward)
        operation = chosen.prepare(cell, device)
    operation()
    return operation


def metric(cell: CostCell) -> Metric:
    """The cell's metric."""
    found: Metric = Registry("metrics")[cell.metric].load()()
    return found


def refusal(cell: CostCell | AccuracyCell, error: BaseException) -> Result:
    """What a failure makes of a cell."""
    if isinstance(error, Unsupported):
        return Result(cell, "skipped", message=str(error))
    message = f"{type(error).__name__}: {error}"
    if not isinstance(error, _SAYS_ALL):
        place = traceback.extract_tb(error.__traceback__)[-1]
        message += f" ({place.name}, line {place.lineno})"
    return Result(cell, "failed", fault=_fault(error), message=message)


def _fault(error: BaseException) -> Fault:
    if isinstance(error, gate.GateError):
        return "gate"
    if isinstance(error, NanLossError):
        return "nan"
    if isinstance(error, timing.ContendedError):
        return "throttled"
    text = str(error).lower()
    # torch's CPU allocator raises a plain RuntimeError, and so does cuBLAS where its handle finds no room.
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or any(one in text for one in _OUT_OF_MEMORY):
        return "oom"
    return "error"


_OUT_OF_MEMORY = ("can't allocate memory", "cuda error: out of memory", "cublas_status_alloc_failed")
