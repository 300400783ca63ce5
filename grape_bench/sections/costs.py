"""What the encodings cost: time and memory by length, and tokens per second."""

from collections.abc import Iterator
from typing import NamedTuple

from grape_bench.bench import Bench, Grid, lengths_of, value
from grape_bench.cell import CostCell
from grape_bench.outcome import Outcome
from grape_bench.ranking import RATIO_MARGIN
from grape_bench.sections.cells import cost_cells, crowded
from grape_bench.sections.wording import ABSENT, CONTENDED_MARK, cost, factor, quantity, span, standing
from grape_bench.table import Curve, Entry, Figure, Heading, Panel, Piece, Prose, Row, Section, Table
from grape_bench.view import View

_MARKS = (
    f"The marks: ▲ above and ▼ below a margin of {RATIO_MARGIN * 100:.0f} %, = inside it, "
    "? where the interval crosses its edge."
)


class _Part(NamedTuple):
    """One metric on one machine, and the prefix of its anchors.

    Args:
        brief: there is too much behind its rows to print.
    """

    view: View
    bench: Bench
    grids: tuple[Grid, ...]
    anchor: str
    brief: bool = False

    @property
    def metric(self) -> str:
        return self.grids[0].metric

    @property
    def unit(self) -> str:
        return self.view.unit(self.metric)


def costs(view: View) -> Section | None:
    """For each machine, scope and metric: a figure, and one table with all settings."""
    brief = crowded(view)
    pieces = [piece for number, bench in enumerate(view.benches, 1) for piece in _bench(view, bench, number, brief)]
    return Section("cost", "Cost", (Prose(_reading(view)), *pieces)) if pieces else None


def throughput(view: View) -> Section | None:
    """The metrics that follow from a time: more is better."""
    pieces = [
        _derived(_Part(view, bench, grids, f"bench-{number}-{derived.replace('_', '-')}"), derived)
        for derived, facts in ((name, plugin.facts) for name, plugin in view.metrics.items())
        for number, bench in enumerate(view.benches, 1)
        for (_, metric), grids in bench.metrics().items()
        if facts.get("derived_from") == metric
    ]
    return Section("throughput", "Tokens per second", tuple(pieces)) if pieces else None


def representatives(grids: tuple[Grid, ...]) -> list[Grid]:
    """For each number format the grid that a figure shows: most lengths, then the largest, then the first."""
    best: dict[str, Grid] = {}
    for grid in grids:
        held = best.get(grid.setting.dtype)
        if held is None or (len(grid.lengths), grid.setting.size) > (len(held.lengths), held.setting.size):
            best[grid.setting.dtype] = grid
    return list(best.values())


def _reading(view: View) -> str:
    if not view.suite.baseline:
        return "The suite names no baseline, so there are absolute figures alone: medians of all samples."
    return (
        f"Each entry is the ratio to {view.suite.baseline} with a mark, and below it its interval and the absolute "
        "figure: the median of all samples of a time, or a peak of memory. The intervals at one setting and length "
        "hold together at 95 % (Bonferroni), so that a row may be searched for what stands out. Times pair round by "
        "round within one process, so that what slows the machine leaves the ratio; memory does not scatter and has no "
        "interval. "
        f"{_MARKS} {CONTENDED_MARK} marks times taken while other work shared the core."
    )


def _bench(view: View, bench: Bench, number: int, brief: bool) -> Iterator[Piece]:
    for (scope, metric), grids in bench.metrics().items():
        part = _Part(view, bench, grids, f"bench-{number}-{scope}-{metric.replace('_', '-')}", brief)
        yield Heading(f"{scope.capitalize()}: {view.name(metric)}, {part.unit}{view.where(bench)}")
        figure = _figure(part)
        if any(panel.curves for panel in figure.panels):
            yield figure
        yield _table(part)


def _table(part: _Part) -> Table:
    lengths = lengths_of(part.grids)
    rows = [row for number, grid in enumerate(part.grids, 1) for row in _rows(part, grid, lengths, number)]
    relative = f"ratio to {part.bench.baseline}, and {part.unit}" if part.bench.baseline else part.unit
    caption = f"{part.view.name(part.metric).capitalize()} by length in tokens: {relative}"
    return Table(f"{part.anchor}-table", caption, ("encoding", *map(str, lengths)), tuple(rows))


def _rows(part: _Part, grid: Grid, lengths: tuple[int, ...], number: int) -> Iterator[Row]:
    yield (Entry(str(grid.setting)),)
    controls = [part.bench.control(grid, length) for length in lengths]
    for index, encoding in enumerate(grid.encodings, 1):
        behind = cost_cells(grid, encoding, f"{part.anchor}-{number}-{index}", brief=part.brief)
        yield (
            Entry(encoding, behind=behind),
            *(cost(part.bench, grid, encoding, length, part.unit) for length in lengths),
        )
        if encoding == part.bench.baseline and any(controls):
            entries = (
                Entry(factor(one.interval), span(one.interval), "muted") if one else Entry("") for one in controls
            )
            yield (Entry(f"{encoding} against itself", tone="muted"), *entries)


def _figure(part: _Part) -> Figure:
    panels = tuple(_panel(part, grid) for grid in representatives(part.grids))
    name = part.view.name(part.metric)
    caption = f"{name.capitalize()} against length, both axes logarithmic: {_absolute(part)} in {part.unit}."
    return Figure(f"{part.anchor}-figure", caption, "length, tokens", f"{name}, {part.unit}", panels)


def _absolute(part: _Part) -> str:
    return "the most allocated over what was there before," if part.unit == "MiB" else "medians"


def _panel(part: _Part, grid: Grid) -> Panel:
    curves = (_curve(part, grid, encoding) for encoding in grid.encodings)
    return Panel(str(grid.setting), tuple(one for one in curves if one.x))


def _curve(part: _Part, grid: Grid, encoding: str) -> Curve:
    points = [(length, value(grid.outcomes.get((encoding, length)))) for length in grid.lengths]
    found = [(float(length), amount) for length, amount in points if amount]  # none and 0 have no logarithm
    slot = part.view.encodings.index(encoding)
    return Curve(encoding, slot, tuple(x for x, _ in found), tuple(y for _, y in found))


def _derived(part: _Part, derived: str) -> Table:
    lengths = lengths_of(part.grids)
    rows: list[Row] = []
    for grid in part.grids:
        rows.append((Entry(str(grid.setting)),))
        rows += [
            (Entry(encoding), *(_rate(grid.outcomes.get((encoding, length))) for length in lengths))
            for encoding in grid.encodings
        ]
    name = part.view.name(derived).capitalize()
    caption = f"{name} in training, by length in tokens; from the median of {part.metric}; more is better"
    return Table(f"{part.anchor}-table", caption, ("encoding", *map(str, lengths)), tuple(rows))


def _rate(outcome: Outcome | None) -> Entry:
    if outcome is None:
        return ABSENT
    step_ms = value(outcome)
    if not step_ms:
        return standing([outcome])
    assert isinstance(outcome.cell, CostCell)
    return Entry(quantity(outcome.cell.batch * outcome.cell.length / step_ms * 1000))
