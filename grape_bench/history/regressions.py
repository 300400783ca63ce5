"""Steps in our own records, commit by commit, found with the project's one comparer."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tabulate import tabulate

from grape_bench.cell import AccuracyCell, Cell
from grape_bench.compare import REGRESSIONS, described, figure
from grape_bench.errors import UserError, allowed
from grape_bench.history.commits import BESIDE, Checkout, split
from grape_bench.outcome import outcomes
from grape_bench.ranking import Comparison, by_seed, compare
from grape_bench.record import AccuracyReading, MemoryReading, Record
from grape_bench.store import Store
from grape_bench.suite import load
from grape_bench.suite_files import SUITES
from grape_bench.suite_format import Thresholds
from grape_bench.suite_text import file_of

_LEVEL = 5  # commits whose records make the level that the next one is held against

Line = list[tuple[str, list[Record]]]  # one cell's records by commit, oldest first


@dataclass(frozen=True)
class Step:
    """A change for the worse that stays.

    Args:
        what: the cell; machine: empty for accuracy, which pools over machines.
        comparison: of the commit against the ones before it.
        confirmed: the commit after it says the same; the newest one has none after it.
    """

    suite: str
    what: str
    machine: str
    commit: str
    comparison: Comparison
    confirmed: bool


@dataclass(frozen=True)
class Regressions:
    """All steps for the worse in some suites.

    Args:
        lines: cells with records at two commits or more; left_out: a sentence for all that belongs to no commit here.
    """

    steps: tuple[Step, ...]
    lines: int
    left_out: tuple[str, ...] = ()

    def text(self) -> str:
        """A table of them, or that there are none."""
        if not self.steps:
            return f"no regression in {self.lines} cells with records at two commits or more"
        rows = [
            [one.suite, one.what, one.machine, one.commit[:10], figure(one.comparison), _word(one)]
            for one in self.steps
        ]
        head = ["suite", "cell", "machine", "commit", "after / before, 95 % interval", "verdict"]
        return tabulate(rows, head, disable_numparse=True)


def regressions(names: Iterable[str], store: Store) -> Regressions:
    """Look for steps in the records of suites, beyond the thresholds that their files state.

    Args:
        names: of suites with records; all if none.

    Raises:
        UserError: this is no whole checkout, or a suite has no records.
    """
    checkout, known = Checkout(), store.suites()
    for name in (asked := list(names)):
        if name not in known:
            raise UserError(f"{name} has no records under {store.folder}.{allowed(name, known)}")
    order = checkout.order()
    found, left_out, count = list[Step](), list[str](), 0
    for name in asked or known:
        commits, refused = split(store.records(name), checkout)
        left_out += refused
        lines = list(_lines({commit: commits[commit] for commit in order if commit in commits}))
        count += len(lines)
        thresholds = _thresholds(name)
        found += [step for line in lines for step in steps(line, thresholds)]
    return Regressions(tuple(found), count, tuple(left_out))


def steps(line: Line, thresholds: Thresholds) -> Iterator[Step]:
    """The steps for the worse of one cell, each length of an accuracy for itself.

    A commit is held against the few before it. What the commit after it does not confirm was a passing disturbance;
    a step, for better or worse, begins a new level.
    """
    cell = line[0][1][0].cell
    for length in cell.test_lengths if isinstance(cell, AccuracyCell) else (None,):
        level = line[:1]
        for index, (commit, records) in enumerate(line[1:], 1):
            found, *later = [_against(level, one, thresholds, length) for _, one in line[index : index + 2]]
            if found is None:
                level = [line[index]]
            elif found.word in ("same", "unclear"):
                level = [*level, line[index]][-_LEVEL:]
            elif not later or (later[0] and later[0].word == found.word):
                level = [line[index]]
                if found.word in REGRESSIONS:
                    yield Step(records[0].suite, _name(cell, length), _machine(records), commit, found, bool(later))


def _thresholds(name: str) -> Thresholds:
    """Those of the suite's file; the defaults for one that is no longer there."""
    places = (folder / f"{name}.yaml" for folder in (SUITES, BESIDE))
    path = next((one for one in places if file_of(one).is_file()), None)
    return load(path).regressions if path else Thresholds()


def _against(level: Line, after: list[Record], thresholds: Thresholds, length: int | None) -> Comparison | None:
    """A commit against the ones before it; None where no seed is shared."""
    before = [record for _, some in level for record in some]
    reading = after[0].reading
    if isinstance(reading, AccuracyReading):
        shared = by_seed(before).keys() & by_seed(after).keys()
        return compare(after, before, thresholds.accuracy, length=length) if shared else None
    if isinstance(reading, MemoryReading):
        return compare(after, before, thresholds.memory)
    return compare(after, before, thresholds.time)


def _lines(commits: Mapping[str, Sequence[Record]]) -> Iterator[Line]:
    """What may be compared, commit by commit: a cell in one environment, or an encoding's accuracy over its seeds."""
    found: defaultdict[tuple[str, ...], Line] = defaultdict(list)
    for commit, records in commits.items():
        at: defaultdict[tuple[str, ...], list[Record]] = defaultdict(list)
        for record in records:
            at[_key(record)].append(record)
        for key, some in at.items():
            if good := _latest(some):
                found[key].append((commit, good))
    yield from (line for line in found.values() if len(line) > 1)


def _key(record: Record) -> tuple[str, ...]:
    cell = record.cell
    if isinstance(cell, AccuracyCell):
        return (cell.model_copy(update={"seed": 0}).id,)
    return (cell.id, record.environment.machine, *record.environment.compared())


def _latest(records: Sequence[Record]) -> list[Record]:
    """Those of the latest run that tried each cell, as reports take them."""
    cells: dict[str, Cell] = {one.cell.id: one.cell for one in records}
    found = outcomes(cells.values(), records).values()
    return [record for outcome in found for record in outcome.records if record.reading]


def _name(cell: Cell, length: int | None) -> str:
    if isinstance(cell, AccuracyCell):
        return f"{cell.encoding}: {cell.task} accuracy at {length}, trained at {cell.train_length}"
    return f"{cell.encoding}: {described(cell)}"


def _machine(records: Sequence[Record]) -> str:
    return "" if records[0].cell.kind == "accuracy" else records[0].environment.machine


def _word(step: Step) -> str:
    return step.comparison.word if step.confirmed else f"{step.comparison.word}, newest commit"
