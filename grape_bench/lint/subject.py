"""What checks look at: a suite, its encodings' portraits, its records and the machine."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

from grape_bench.cell import AccuracyCell, CostCell
from grape_bench.lint.portrait import Portrait
from grape_bench.record import Record
from grape_bench.suite import expand
from grape_bench.suite_entry import AccuracyGrid, CostGrid
from grape_bench.suite_format import Suite
from grape_bench.suite_text import Loc
from grape_bench.suite_values import Plugins

Grid = TypeVar("Grid", AccuracyGrid, CostGrid)


class Machine(NamedTuple):
    """What the machine that checks has. GiB are 2^30 bytes."""

    memory_gib: float
    cores: int


class Member(NamedTuple):
    """An encoding, and where the suite names it."""

    loc: Loc
    portrait: Portrait


class Entry(NamedTuple, Generic[Grid]):
    """An entry of `cost` or `accuracy`, with the encodings that it measures."""

    loc: Loc
    grid: Grid
    members: tuple[Member, ...]


AnyEntry = Entry[AccuracyGrid] | Entry[CostGrid]


class Trained(NamedTuple):
    """An encoding in one of the entries that train it."""

    loc: Loc
    portrait: Portrait
    grid: AccuracyGrid


@dataclass(frozen=True)
class Subject:
    """A checked suite.

    Args:
        records: the suite's own, of any machine.
    """

    suite: Suite
    machine: Machine
    records: Sequence[Record] = ()
    plugins: Plugins = field(default_factory=Plugins)

    @cached_property
    def members(self) -> tuple[Member, ...]:
        """The encodings of the suite's list."""
        return self._members(("encodings",), self.suite.encodings)

    @cached_property
    def trainings(self) -> tuple[Entry[AccuracyGrid], ...]:
        return tuple(self._entries("accuracy", self.suite.accuracy))

    @cached_property
    def costs(self) -> tuple[Entry[CostGrid], ...]:
        return tuple(self._entries("cost", self.suite.cost))

    @property
    def entries(self) -> Iterator[AnyEntry]:
        """Those of `cost`, then those of `accuracy`."""
        yield from self.costs
        yield from self.trainings

    @property
    def stretched(self) -> list[Entry[AccuracyGrid]]:
        """The trainings that are tested at more tokens than they were trained at."""
        return [one for one in self.trainings if max(one.grid.test_lengths) > one.grid.train_length]

    def trained(self, *, stretched: bool = False) -> Iterator[Trained]:
        """Each encoding with each of its trainings, or with the stretched ones."""
        for _, grid, members in self.stretched if stretched else self.trainings:
            yield from (Trained(loc, portrait, grid) for loc, portrait in members)

    def cells(self, entry: AnyEntry) -> tuple[CostCell | AccuracyCell, ...]:
        """Those of one entry."""
        if entry.loc not in self._cells:
            grids: dict[str, object] = {"cost": (), "accuracy": (), str(entry.loc[0]): (entry.grid,)}
            self._cells[entry.loc] = expand(self.suite.model_copy(update=grids))
        return self._cells[entry.loc]

    @cached_property
    def _cells(self) -> dict[Loc, tuple[CostCell | AccuracyCell, ...]]:
        return {}

    def _entries(self, key: str, grids: Sequence[Grid]) -> Iterator[Entry[Grid]]:
        for index, grid in enumerate(grids):
            own = self._members((key, index, "encodings"), grid.encodings)
            yield Entry((key, index), grid, own or self.members)

    def _members(self, loc: Loc, texts: Sequence[str]) -> tuple[Member, ...]:
        registry = self.plugins["encodings"]
        return tuple(Member((*loc, index), Portrait.of(text, registry)) for index, text in enumerate(texts))
