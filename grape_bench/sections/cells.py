"""What a row of figures rests on: each of its cells with its status, environment and samples."""

import statistics
from collections.abc import Iterable

from grape_bench.bench import Grid
from grape_bench.cell import AccuracyCell
from grape_bench.outcome import Outcome
from grape_bench.record import AccuracyReading, MemoryReading, Reading, Record, TimeReading
from grape_bench.score import Score
from grape_bench.sections.summary import hardware
from grape_bench.sections.wording import ABSENT, amount_of, quantity
from grape_bench.table import Entry, Row, Table
from grape_bench.trial import Course, Trial, learned
from grape_bench.view import View

MOST = 2_000_000  # characters that a page may spend on samples
_RECORD, _SAMPLE = 250, 6  # characters that one takes, roughly


def crowded(view: View) -> bool:
    """One page cannot hold every sample of every process."""
    found = [record for bench in view.benches for one in bench.outcomes for record in one.records]
    samples = sum(len(one.reading.samples_ms) for one in found if isinstance(one.reading, TimeReading))
    return _RECORD * len(found) + _SAMPLE * samples > MOST


def cost_cells(grid: Grid, encoding: str, anchor: str, *, brief: bool) -> Table:
    """An encoding's cells in a grid, a row for each process that measured one.

    Args:
        brief: a row for each cell instead, with quartiles of all its samples.
    """
    found = [(str(length), grid.outcomes.get((encoding, length))) for length in grid.lengths]
    rows = [
        (record, (_cell(length, one), _status(one, record), *_taken(one, record, brief)))
        for length, one in found
        if one is not None
        for record in (one.records[-1:] if brief else one.records) or (None,)
    ]
    caption = f"{encoding}: {grid.metric}, {grid.scope}, {grid.setting}"
    return Table(anchor, caption, ("length", "status", "at, UTC", "samples"), tuple(_by_environment(rows)), prose=True)


def trial_cells(course: Course, trial: Trial, group: str, anchor: str) -> Table:
    """An encoding's trainings, a row for each seed, with the right answers in one group of questions."""
    rows = [(one.last, _training(one, course, trial, group)) for one in trial.outcomes]
    columns = ("seed", "status", "at, UTC", *(f"{one}" for one in course.lengths), "learning rate", "data")
    caption = f"{trial.encoding}: right answers in {group}, {course}"
    return Table(anchor, caption, columns, tuple(_by_environment(rows)), prose=True)


def _by_environment(rows: Iterable[tuple[Record | None, Row]]) -> Iterable[Row]:
    """Rows under what they were measured on."""
    groups: dict[str, list[Row]] = {}
    for record, row in rows:
        groups.setdefault(_origin(record), []).append(row)
    for origin, found in groups.items():
        yield (Entry(origin),)
        yield from found


def _origin(record: Record | None) -> str:
    return f"{hardware(record.environment)}; run {record.run}" if record else "not measured"


def _cell(name: str, outcome: Outcome) -> Entry:
    return Entry(name, f"cell {outcome.cell.id}")


def _status(outcome: Outcome, record: Record | None) -> Entry:
    return Entry(outcome.standing, (record and record.fault) or "", outcome.standing)


def _at(record: Record) -> Entry:
    return Entry(record.at[:16].replace("T", " "))


def _taken(outcome: Outcome, record: Record | None, brief: bool) -> tuple[Entry, Entry]:
    if record is None:
        return ABSENT, Entry("never tried")
    if record.reading is None:
        return _at(record), Entry(outcome.message)
    pooled = brief and isinstance(record.reading, TimeReading)
    return _at(record), _quartiles(outcome) if pooled else _samples(record.reading)


def _samples(reading: Reading) -> Entry:
    match reading:
        case TimeReading(samples_ms=samples, inner=inner, clock=clock, threads=threads):
            how = f"ms, {amount_of(len(samples), 'round')} of {amount_of(inner, 'call')}"
            warm = f"; warm-up {_figures(reading.warmup_ms)}" if reading.warmup_ms else ""
            return Entry(_figures(samples), f"{how} by {clock} on {amount_of(threads, 'thread')}{warm}")
        case MemoryReading(peak_mib=peak, resident_mib=mark):
            checked = f"high-water mark of the process {quantity(mark, 'MiB')}" if mark else ""
            return Entry(quantity(peak, "MiB"), checked)
    raise TypeError(f"a cost is no {reading.kind} reading")


def _quartiles(outcome: Outcome) -> Entry:
    readings = [one.reading for one in outcome.records if isinstance(one.reading, TimeReading)]
    samples = [ms for one in readings for ms in one.samples_ms]
    inside = statistics.quantiles(samples, method="inclusive") if len(samples) > 1 else samples * 3
    how = f"ms: least, quartiles and greatest of {amount_of(len(samples), 'sample')} in {len(readings)} processes"
    return Entry(_figures([min(samples), *inside, max(samples)]), how)


def _figures(samples: Iterable[float]) -> str:
    return " ".join(f"{one:.4g}" if one < 1e4 else f"{one:.0f}" for one in samples)


def _training(outcome: Outcome, course: Course, trial: Trial, group: str) -> Row:
    assert isinstance(outcome.cell, AccuracyCell)
    head = _cell(str(outcome.cell.seed), outcome)
    record = outcome.last
    if record is None or not isinstance(record.reading, AccuracyReading):
        at = Entry(_at(record).text, outcome.message) if record else ABSENT
        return (head, _status(outcome, record), at, *[ABSENT] * (len(course.lengths) + 2))
    reading = record.reading
    scores = {one.length: one for one in reading.scores if one.group == group}
    status = _status(outcome, record) if learned(record, trial.threshold) else Entry("did not learn", tone="unlearned")
    right = (_right(scores.get(length)) for length in course.lengths)
    return (head, status, _at(record), *right, Entry(f"{reading.lr:g}"), Entry(reading.data_sha[:10]))


def _right(score: Score | None) -> Entry:
    return Entry(f"{score.correct} of {score.total}") if score else ABSENT
