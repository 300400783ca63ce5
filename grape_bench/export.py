"""Records as a flat table: one row for each sample, score or peak."""

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any

from grape_bench.cell import AccuracyCell, CostCell, Frozen, ModelOptions, TrainingOptions
from grape_bench.environment import COMPARED
from grape_bench.record import AccuracyReading, MemoryReading, Reading, Record, TimeReading
from grape_bench.score import Score

_RECORD = ("id", "suite", "run", "block_run", "at", "status", "fault", "message", "role")
_CELL = tuple(dict.fromkeys([*CostCell.model_fields, *AccuracyCell.model_fields]))
_NESTED: dict[str, type[Frozen]] = {"model": ModelOptions, "training": TrainingOptions}
_TIME = ("sample", "sample_ms", "sample_wall_ms", "inner", "clock")
_MEMORY = ("peak_mib", "resident_mib", "reserved_mib")
_SCORE = ("length", "group", "correct", "total", "blind", "chance", "nats", "blind_nats")
_FIGURES = ("accuracy", "normalised", "lr", "data_sha", "text_sha", "parameters")
_ACCURACY = ("headline", "control", *(f"score_{key}" for key in _SCORE), *_FIGURES)
_PLACE = ("machine", *COMPARED, "python", "system", "package", "commit", "dirty")


def columns() -> tuple[str, ...]:
    """The names of all columns, in order; a quantity's unit is in its name."""
    cell = [
        f"{key}_{part}" if part else key
        for key in _CELL
        for part in (_NESTED[key].model_fields if key in _NESTED else ("",))
    ]
    return (*_RECORD, *cell, *_TIME, *_MEMORY, *_ACCURACY, *(f"environment_{key}" for key in _PLACE))


def rows(records: Iterable[Record]) -> Iterator[dict[str, Any]]:
    """The records' rows, by column; what does not apply is left out.

    A time has a row for each sample, warm-up excluded, an accuracy for each score, and a peak of memory one. A record
    without a reading, such as a skip, has one row.
    """
    for record in records:
        shared = {key: getattr(record, key) for key in _RECORD} | _cell(record.cell)
        shared |= {f"environment_{key}": getattr(record.environment, key) for key in _PLACE}
        for part in _reading(record.reading):
            yield shared | part


def csv_text(records: Iterable[Record]) -> str:
    """The rows as CSV with a header; an empty field is what does not apply."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows(records))
    return text.getvalue()


def _cell(cell: CostCell | AccuracyCell) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in cell:
        if key in _NESTED:
            flat |= {f"{key}_{part}": one for part, one in value}
        else:
            flat[key] = " ".join(map(str, value)) if isinstance(value, tuple) else value
    return flat


def _reading(reading: Reading | None) -> Iterator[dict[str, Any]]:
    match reading:
        case None:
            yield {}
        case TimeReading():
            pairs = zip(reading.samples_ms, reading.wall_ms, strict=True)
            for index, (own, wall) in enumerate(pairs):
                yield dict(zip(_TIME, (index, own, wall, reading.inner, reading.clock), strict=True))
        case MemoryReading():
            yield {key: getattr(reading, key) for key in _MEMORY}
        case AccuracyReading():
            kinds = (("", reading.scores), ("window", reading.windowed), ("cut", reading.truncated))
            for control, scores in kinds:
                yield from (dict(zip(_ACCURACY, _score(reading, control, one), strict=True)) for one in scores)


def _score(reading: AccuracyReading, control: str, score: Score) -> tuple[Any, ...]:
    own = (getattr(score, key) for key in _SCORE)
    named = {**dict(reading), "accuracy": score.accuracy, "normalised": score.normalised}
    return (reading.headline, control, *own, *(named[key] for key in _FIGURES))
