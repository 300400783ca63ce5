"""One block of times: its members are checked alone, then timed beside each other; who fails leaves it."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

import torch

from grape_bench import memory, timing
from grape_bench.attempt import Note, Result, Tell, metric, preflight, refusal
from grape_bench.backends import noting
from grape_bench.cell import Block, CostCell
from grape_bench.metrics import Operation
from grape_bench.record import Role, TimeReading
from grape_bench.rounds import MemberError, interleave
from grape_bench.timing import ContendedError, Effort

_SENTINEL_SIZE = {"cpu": 192, "cuda": 2048}  # the latter takes longer than what is short on a GPU


class Timer(Protocol):
    """How a device times the members of a block."""

    def effort(self, effort: Effort, processes: int) -> Effort:
        """What this device needs at least, in a block that is measured in so many processes."""

    def time(
        self, operations: Sequence[Operation], effort: Effort, *, seed: int, before: Callable[[int], None]
    ) -> list[TimeReading]:
        """Time them in interleaved rounds.

        Raises:
            MemberError: one of them failed.
            ContendedError: the device did not hold still.
        """

    def notes(self, operations: Sequence[Operation]) -> list[tuple[str, ...]]:
        """What can be said of how the device computes each, once all are timed."""


class HostTimer(NamedTuple):
    """Times on a CPU, of operations on so many threads."""

    threads: int = 1

    def effort(self, effort: Effort, processes: int) -> Effort:
        return effort

    def time(
        self, operations: Sequence[Operation], effort: Effort, *, seed: int, before: Callable[[int], None]
    ) -> list[TimeReading]:
        watch = timing.stopwatch(self.threads)
        readings = interleave(operations, watch, effort, seed=seed, before=before)
        overhead = timing.overhead_ms(watch)
        return [one.model_copy(update={"overhead_ms": overhead, "threads": self.threads}) for one in readings]

    def notes(self, operations: Sequence[Operation]) -> list[tuple[str, ...]]:
        return [()] * len(operations)


class _Sound(NamedTuple):
    """A member that may be timed."""

    cell: CostCell
    operation: Operation
    notes: tuple[str, ...]
    role: Role = "member"


class TimeBlock(NamedTuple):
    """A block on one device.

    Args:
        threads: of one operation.
    """

    block: Block
    device: str
    threads: int
    timer: Timer
    tell: Tell

    def measure(self, effort: Effort) -> list[Result]:
        """Time the members that are sound. One that fails in a round is blamed, and the rest begins anew."""
        sound, results = self._members()
        while sound:
            try:
                return results + self._rounds(sound, effort)
            except MemberError as failed:
                if failed.index >= len(sound) or failed.__cause__ is None:
                    raise  # the sentinel, which is no cell
                lost = sound[failed.index].cell
                results.append(refusal(lost, failed.__cause__))
            except ContendedError as error:
                return results + [refusal(one.cell, error) for one in sound if one.role == "member"]
            sound = [one for one in sound if one.cell != lost]
            memory.release(self.device)
        return results

    def _members(self) -> tuple[list[_Sound], list[Result]]:
        """The sound ones, each tried alone, with the baseline once more; and those that are refused."""
        found = [
            self._try(cell, partial(preflight, cell, self.device, self.threads, self.tell)) for cell in self._cells
        ]
        base = self.block.cells[self.block.baseline] if self.block.baseline is not None else None
        for one in [one for one in found if isinstance(one, _Sound) and one.cell == base]:
            twin = self._try(one.cell, partial(metric(one.cell).prepare, one.cell, self.device))
            if isinstance(twin, Result):
                found.remove(one)
            found.append(twin._replace(notes=one.notes, role="control") if isinstance(twin, _Sound) else twin)
        return (
            [one for one in found if isinstance(one, _Sound)],
            [one for one in found if isinstance(one, Result)],
        )

    @property
    def _cells(self) -> list[CostCell]:
        return [cell for cell in self.block.cells if isinstance(cell, CostCell)]

    def _try(self, cell: CostCell, make: Callable[[], Operation]) -> _Sound | Result:
        try:
            with noting() as notes:
                return _Sound(cell, make(), tuple(notes))
        except Exception as error:  # the runner's own rule: one failure stops one cell, and is recorded
            result = refusal(cell, error)
        memory.release(self.device)
        return result

    def _rounds(self, sound: list[_Sound], effort: Effort) -> list[Result]:
        names = [one.cell.id for one in sound] + [""]  # the last one is the sentinel, which is no cell
        *readings, sentinel = self.timer.time(
            [one.operation for one in sound] + [_sentinel(self.device)],
            effort,
            seed=int(self.block.id[:8], 16),
            before=lambda index: self.tell(Note(names[index], "time")),
        )
        more, said = {"sentinel_ms": sentinel.samples_ms}, self.timer.notes([one.operation for one in sound])
        return [
            Result(one.cell, "ok", reading.model_copy(update=more), role=one.role, notes=(*one.notes, *notes))
            for one, reading, notes in zip(sound, readings, said, strict=True)
        ]


def _sentinel(device: str) -> Operation:
    """A fixed multiplication of two square matrices."""
    matrix = torch.ones(_SENTINEL_SIZE[device], _SENTINEL_SIZE[device], device=device)
    return lambda: matrix @ matrix
