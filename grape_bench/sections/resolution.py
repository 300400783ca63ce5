"""What the machine could resolve: a control timed against itself, the sentinel, and the harness's own share."""

import statistics
from collections.abc import Iterator

from grape_bench.bench import CONTENDED, Bench, Grid, contention
from grape_bench.interval import Interval
from grape_bench.ranking import compare
from grape_bench.record import Record, TimeReading
from grape_bench.sections.wording import amount_of, factor, span
from grape_bench.table import Entry, Piece, Row, Section, Table
from grape_bench.view import View

_FEW = 1  # block runs of a setting up to which they are counted, and not listed


def resolution(view: View) -> Section | None:
    """The controls of all block runs, summed up by metric, and one by one where a setting was run many times."""
    pieces: list[Piece] = []
    for number, bench in enumerate(view.benches, 1):
        rows = [row for grids in bench.metrics().values() if (row := _row(bench, grids))]
        if rows:
            pieces.append(_summary(bench, tuple(rows), f"bench-{number}-resolution"))
            pieces += _lists(bench, f"bench-{number}-controls")
    return Section("resolution", "What this machine can resolve", tuple(pieces)) if pieces else None


def _summary(bench: Bench, rows: tuple[Row, ...], anchor: str) -> Table:
    columns = ("metric", "A/A intervals with 1", "median width", "sentinel drift", "harness adds", "wall / CPU")
    foot = (
        f"In each block run {bench.baseline} is timed a second time as if it were another encoding (A/A): its ratio to "
        "itself is 1, so a difference no wider than these intervals is not to be trusted. Drift: the sentinel's median "
        "in the second half of the rounds over that in the first, at its worst. The harness adds the time of a lap "
        f"around nothing, as a share of the shortest sample. Wall over CPU time above {CONTENDED} is contended."
    )
    return Table(anchor, "A/A controls, drift and overhead", columns, rows, prose=True, foot=foot)


def _row(bench: Bench, grids: tuple[Grid, ...]) -> Row | None:
    pairs = [pair for grid in grids for pair in _pairs(bench, grid)]
    if not pairs:
        return None
    intervals = [_interval(*pair) for pair in pairs]
    good = sum(one.low <= 1 <= one.high for one in intervals)
    readings = [one.reading for _, one in pairs if isinstance(one.reading, TimeReading)]
    return (
        Entry(f"{grids[0].metric}, {grids[0].scope}"),
        Entry(f"{good} of {len(intervals)}"),
        Entry(f"{100 * statistics.median(one.high - one.low for one in intervals):.1f} %"),
        Entry(_worst_drift(readings)),
        Entry(_share(readings)),
        _busy([base for _, base in pairs]),
    )


def _lists(bench: Bench, anchor: str) -> Iterator[Table]:
    """The block runs one by one, of settings that were run several times."""
    for number, (grid, length) in enumerate(((one, at) for one in bench.grids for at in one.lengths), 1):
        pairs = list(_pairs(bench, grid, length))
        if len(pairs) > _FEW:
            rows = tuple(_block_run(index, *pair) for index, pair in enumerate(pairs, 1))
            caption = f"A/A of {bench.baseline}, {grid.metric} at {length} tokens, {grid.setting}: each block run"
            yield Table(f"{anchor}-{number}", caption, ("block run", "ratio to itself", "width", "wall / CPU"), rows)


def _block_run(index: int, control: Record, base: Record) -> Row:
    interval = _interval(control, base)
    inside = interval.low <= 1 <= interval.high
    return (
        Entry(str(index)),
        Entry(factor(interval), span(interval), "plain" if inside else "unclear"),
        Entry(f"{100 * (interval.high - interval.low):.1f} %"),
        _busy([base]),
    )


def _pairs(bench: Bench, grid: Grid, length: int | None = None) -> Iterator[tuple[Record, Record]]:
    """Control and member of the baseline, for each block run that the report counts."""
    for at in grid.lengths if length is None else (length,):
        base = grid.outcomes.get((bench.baseline or "", at))
        if base and base.standing == "ok":
            twins = {one.block_run: one for one in bench.readings.get((base.cell.id, "control"), ())}
            yield from ((twins[one.block_run], one) for one in base.records if one.block_run in twins)


def _interval(control: Record, base: Record) -> Interval:
    return compare([control], [base]).interval


def _worst_drift(readings: list[TimeReading]) -> str:
    drifts = [_drift(one.sentinel_ms) for one in readings if len(one.sentinel_ms) > 1]
    return f"{100 * max(drifts, key=abs):+.1f} %" if drifts else "–"


def _drift(samples: tuple[float, ...]) -> float:
    half = len(samples) // 2
    return statistics.median(samples[half:]) / statistics.median(samples[:half]) - 1


def _share(readings: list[TimeReading]) -> str:
    shares = [one.overhead_ms / (min(one.samples_ms) * one.inner) for one in readings if one.overhead_ms is not None]
    return f"{100 * max(shares):.2g} % at most" if shares else "–"


def _busy(block_runs: list[Record]) -> Entry:
    """Wall over CPU time, where that is known."""
    ratios = [ratio for one in block_runs if (ratio := contention([one])) is not None]
    if not ratios:
        return Entry("–")
    contended = sum(ratio > CONTENDED for ratio in ratios)
    many = f"contended: {contended} of {amount_of(len(ratios), 'block run')}" if len(ratios) > 1 else "contended"
    return Entry(f"{statistics.median(ratios):.2f}", many if contended else "", "unclear" if contended else "plain")
