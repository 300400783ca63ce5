"""Equal tuning: each encoding's learning rate, chosen on held-out data of the training length."""

from collections.abc import Iterable

from grape_bench.cell import AccuracyCell
from grape_bench.record import AccuracyReading, Record

TUNING_SEED = 1_000_003  # far from any seed of a suite: its data are seen in no test


def candidates(cell: AccuracyCell) -> tuple[AccuracyCell, ...]:
    """The trainings that decide a cell's learning rate: one a rate, all at the cell's budget, tested at its training
    length alone, on a seed of their own that all seeds of the suite share."""
    return tuple(
        cell.model_copy(
            update={
                "seed": TUNING_SEED,
                "test_lengths": (cell.train_length,),
                "training": cell.training.model_copy(update={"lr": rate}),
                "tune": (),
                "controls": False,
            }
        )
        for rate in cell.tune
    )


def missing(cell: AccuracyCell, records: Iterable[Record]) -> tuple[AccuracyCell, ...]:
    """The candidates that have no record, of any status."""
    known = {record.id for record in records}
    return tuple(one for one in candidates(cell) if one.id not in known)


def choose(cell: AccuracyCell, records: Iterable[Record]) -> float | None:
    """The rate with the best headline score, then the lower training loss; None where no candidate was trained."""
    latest = {record.id: record.reading for record in records if isinstance(record.reading, AccuracyReading)}
    trained = [(one.training.lr, latest[one.id]) for one in candidates(cell) if one.id in latest]
    if not trained:
        return None
    return max(trained, key=lambda pair: _merit(pair[1]))[0]


def _merit(reading: AccuracyReading) -> tuple[float, float]:
    merit = sum(score.merit for score in reading.scores if score.group == reading.headline)
    return merit, -reading.curve[-1].loss
