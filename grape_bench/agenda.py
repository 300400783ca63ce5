"""What a run has to do: costs on each kind of place, accuracies once, wherever that may be."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from grape_bench.cell import AccuracyCell, Block
from grape_bench.environment import Environment
from grape_bench.placing import Job, Kind, Place
from grape_bench.record import Record
from grape_bench.schedule import Line, earlier_failures, pending, standing
from grape_bench.tuning import missing


@dataclass(frozen=True)
class Agenda:
    """What is left of some blocks.

    Args:
        records: all there are of these machines.
        standing: those of them by which learning rates are chosen: none that a fresh run has voided.
        known: cells that need no measuring; failed: those of them whose last attempt failed.
    """

    jobs: tuple[Job, ...]
    records: tuple[Record, ...]
    standing: tuple[Record, ...]
    known: int
    failed: int

    @property
    def blocks(self) -> list[Block]:
        return [job.block for job in self.jobs]


class _Part(NamedTuple):
    """Blocks that are done once, with what is on record of them."""

    kind: Kind | None
    blocks: list[Block]
    lines: list[Line]
    environment: Environment


def agenda(
    blocks: Sequence[Block],
    lines: Mapping[str, list[Line]],
    places: Sequence[Place],
    *,
    processes: int,
    fresh: bool = False,
    retry_failed: bool = False,
) -> Agenda:
    """What is left to do.

    Args:
        lines: by machine, oldest first.
        processes: in how many a time cell is measured, at least.
        fresh: as if nothing were on record; retry_failed: as if what failed were not.
    """
    jobs, known, failed = list[Job](), list[Record](), 0
    for part in _parts(blocks, lines, places):
        known = [] if fresh else standing(part.blocks, part.lines)
        left = pending(part.blocks, known, part.environment, processes=processes, retry_failed=retry_failed)
        jobs += [Job(block, part.kind) for block in [*_tuning(left, known), *left]]
        failed += 0 if fresh or retry_failed else earlier_failures(part.blocks, known, part.environment)
    measured = {cell.id for job in jobs for cell in job.block.cells}
    asked = {cell.id for block in blocks for cell in block.cells}
    records = tuple(line for some in lines.values() for line in some if isinstance(line, Record))
    return Agenda(tuple(jobs), records, tuple(known), len(asked - measured), failed)  # known: of the last part


def _parts(blocks: Sequence[Block], lines: Mapping[str, list[Line]], places: Sequence[Place]) -> Iterator[_Part]:
    """A cost is a machine's own, a score is not: the last part is of all machines."""
    cost, accuracy = ([block for block in blocks if block.exclusive is alone] for alone in (True, False))
    kinds = {place.kind: place.environment for place in places}
    for kind, environment in kinds.items():
        yield _Part(kind, cost, lines[environment.machine], environment)
    # Each machine has the start of a run that it was in, and no record is older than the start of its run.
    whole = sorted((line for some in lines.values() for line in some), key=lambda one: (one.at, one.kind == "record"))
    yield _Part(None, accuracy, whole, places[0].environment)


def _tuning(blocks: Sequence[Block], records: Sequence[Record]) -> list[Block]:
    """The trainings by which learning rates are chosen, that come first."""
    tuned = [cell for block in blocks for cell in block.cells if isinstance(cell, AccuracyCell)]
    return [Block((cell,)) for cell in dict.fromkeys(one for cell in tuned for one in missing(cell, records))]
