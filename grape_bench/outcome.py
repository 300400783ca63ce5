"""What became of each cell that a suite asks for, and which of its records count."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from grape_bench.cell import AccuracyCell, Cell
from grape_bench.environment import Environment, differences
from grape_bench.record import AccuracyReading, Record

Standing = Literal["ok", "skipped", "failed", "missing"]


@dataclass(frozen=True)
class Outcome:
    """One cell and what is known of it.

    Args:
        records: where it is ok, those that count: one for each process of the latest run; otherwise the last attempt,
            or none where the cell is missing.
    """

    cell: Cell
    standing: Standing
    records: tuple[Record, ...] = ()

    @property
    def last(self) -> Record | None:
        return self.records[-1] if self.records else None

    @property
    def fault(self) -> str:
        return (self.last and self.last.fault) or ""

    @property
    def message(self) -> str:
        return (self.last and self.last.message) or ""


def outcomes(cells: Iterable[Cell], records: Iterable[Record]) -> dict[str, Outcome]:
    """The outcome of each cell by its id, in the order of the cells.

    The latest run that tried a cell speaks for it: an older success does not hide a failure since.

    Args:
        records: in any order; those of other cells, and A/A controls, are passed over.
    """
    wanted = {cell.id: cell for cell in cells}
    tried: defaultdict[str, list[Record]] = defaultdict(list)
    for record in sorted(records, key=lambda one: one.at):
        if record.role == "member":
            tried[record.cell.id].append(record)
    return {key: _outcome(cell, tried[key]) for key, cell in wanted.items()}


def of_one_text(records: Iterable[Record]) -> tuple[list[Record], tuple[str, ...]]:
    """Of each setting those trainings whose text is that of the newest, and a sentence for each text that is left out.

    Which text a task has is in its readings alone: sources of Python differ from version to version.
    """
    kept, newest, others = list[Record](), dict[str, str | None](), Counter[str]()
    for record in sorted(records, key=lambda one: one.at, reverse=True):
        if isinstance(record.cell, AccuracyCell) and isinstance(record.reading, AccuracyReading):
            text = record.reading.text_sha
            first = newest.setdefault(record.cell.setting, text)
            if text != first:
                others[f"of the text {text}, where the newest are of {first}"] += 1
                continue
        kept.append(record)
    return kept, tuple(f"{count} trainings {sentence}" for sentence, count in others.items())


def _outcome(cell: Cell, attempts: list[Record]) -> Outcome:
    if not attempts:
        return Outcome(cell, "missing")
    latest = [one for one in attempts if one.run == attempts[-1].run]
    good = tuple(one for one in latest if one.status == "ok" and one.reading is not None)
    if not good:
        return Outcome(cell, "skipped" if latest[-1].status == "skipped" else "failed", (latest[-1],))
    if cell.kind == "cost":
        return Outcome(cell, "ok", tuple({one.block_run: one for one in good}.values()))  # one for each process
    return Outcome(cell, "ok", good[-1:])  # a second one is a replicate, and the latest counts


@dataclass(frozen=True)
class Machine:
    """The records of one machine that may be compared with each other.

    Args:
        environment: that of the newest record.
        records: those whose environment is like it.
        older: why further records of this machine are left out, a sentence for each key that differs.
    """

    environment: Environment
    records: tuple[Record, ...]
    older: tuple[str, ...] = ()


def machines(records: Iterable[Record]) -> tuple[Machine, ...]:
    """Split records by machine, the one with the newest record first.

    On one machine the newest environment counts: after a new torch or driver the older records are left out by name.
    """
    found: defaultdict[str, list[Record]] = defaultdict(list)
    for record in sorted(records, key=lambda one: one.at):
        found[record.environment.machine].append(record)
    return tuple(_machine(group) for group in sorted(found.values(), key=lambda group: group[-1].at, reverse=True))


def _machine(records: list[Record]) -> Machine:
    newest = records[-1].environment
    alike = tuple(one for one in records if one.environment.compared() == newest.compared())
    older = dict.fromkeys(
        sentence
        for one in records
        if one.environment.compared() != newest.compared()
        for sentence in differences(one.environment, newest)
    )
    return Machine(newest, alike, tuple(older))
