"""What a run has to do: costs on each kind of place, accuracies once, wherever that may be."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from grape_bench.cell import AccuracyCell, Block
from grape_bench.environment import Environment
from grape_bench.placing import Job, Kind, Place
from grape_bench.record import Record
from grape_bench.schedule import Line, earlier_failures, pending
from grape_bench.tuning import missing


@dataclass(frozen=True)
class Agenda:
    """What is left of some blocks.

    Args:
        records: all there are of these machines.
        known: cells that need no measuring; failed: those of them whose last attempt failed.
    """

    jobs: tuple[Job, ...]
    records: tuple[Record, ...]
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
    jobs, failed = list[Job](), 0
    for part in _parts(blocks, lines, places):
        known = [] if fresh else part.lines
        left = pending(part.blocks, known, part.environment, processes=processes, retry_failed=retry_failed)
        jobs += [Job(block, part.kind) for block in [*_tuning(left, known), *left]]
        failed += 0 if fresh or retry_failed else earlier_failures(part.blocks, part.lines, part.environment)
    measured = {cell.id for job in jobs for cell in job.block.cells}
    asked = {cell.id for block in blocks for cell in block.cells}
    records = tuple(line for some in lines.values() for line in some if isinstance(line, Record))
    return Agenda(tuple(jobs), records, len(asked - measured), failed)


def _parts(blocks: Sequence[Block], lines: Mapping[str, list[Line]], places: Sequence[Place]) -> Iterator[_Part]:
    """A cost is a machine's own, a score is not."""
    cost, accuracy = ([block for block in blocks if block.exclusive is alone] for alone in (True, False))
    kinds = {place.kind: place.environment for place in places}
    for kind, environment in kinds.items():
        yield _Part(kind, cost, lines[environment.machine], environment)
    yield _Part(None, accuracy, [line for some in lines.values() for line in some], places[0].environment)


def _tuning(blocks: Sequence[Block], lines: Sequence[Line]) -> list[Block]:
    """The trainings by which learning rates are chosen, that come first."""
    records = [line for line in lines if isinstance(line, Record)]
    tuned = [cell for block in blocks for cell in block.cells if isinstance(cell, AccuracyCell)]
    return [Block((cell,)) for cell in dict.fromkeys(one for cell in tuned for one in missing(cell, records))]
