"""Which block goes where: a cost block has a device to itself, trainings share one."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from grape_bench.cell import Block
from grape_bench.environment import Environment

Kind = tuple[str, ...]  # a machine, and what else must match before two costs are compared


@dataclass(frozen=True)
class Place:
    """A device that blocks are put on: a machine's cores, or one GPU.

    Args:
        name: by which its executor knows it.
        environment: what a measurement there rests on.
        slots: trainings that may share it.
    """

    name: str
    environment: Environment
    slots: int

    @property
    def kind(self) -> Kind:
        """Places of one kind give costs that may be compared, and kept in one file."""
        return (self.environment.machine, *self.environment.compared())


@dataclass(frozen=True)
class Job:
    """A block that is to be measured.

    Args:
        kind: of the places where it may be, None for any.
        losses: how often it was begun on a machine that was lost.
    """

    block: Block
    kind: Kind | None = None
    losses: int = 0


def room(places: Sequence[Place]) -> tuple[int, int]:
    """How many trainings, and how many cost blocks, may run side by side."""
    return sum(place.slots for place in places), len(places)


def place_next(
    queue: Iterable[Job], places: Sequence[Place], running: Sequence[tuple[Place, Block]], ready: Callable[[Job], bool]
) -> tuple[int, Place] | None:
    """The index of the first job that may start now, and where.

    A job that finds no room keeps its places from those behind it, so that it comes to its turn.

    Args:
        running: what is where.
        ready: whether a job waits for nothing but room.
    """
    open_ = list(places)
    for index, job in enumerate(queue):
        fitting = [place for place in open_ if job.kind in (None, place.kind)]
        if room := [place for place in fitting if _fits(job.block, place, running)]:
            if ready(job):
                return index, min(room, key=lambda place: len(_on(place, running)))
        else:
            open_ = [place for place in open_ if place not in fitting]
            if not open_:
                return None
    return None


def _fits(block: Block, place: Place, running: Sequence[tuple[Place, Block]]) -> bool:
    there = _on(place, running)
    if block.exclusive or any(one.exclusive for one in there):
        return not there
    return len(there) < place.slots


def _on(place: Place, running: Sequence[tuple[Place, Block]]) -> list[Block]:
    return [block for where, block in running if where.name == place.name]
