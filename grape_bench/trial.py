"""What the accuracy records say: each encoding in each setting over its seeds, what learned, and how fast."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from grape_bench.cell import AccuracyCell
from grape_bench.interval import Interval, mean_interval
from grape_bench.outcome import Outcome
from grape_bench.record import AccuracyReading, Record
from grape_bench.score import Score

Tests = Literal["scores", "windowed", "truncated"]  # on the whole input, or under a control

REACHED = 0.9  # the normalised score in training that "steps to" waits for


@dataclass(frozen=True)
class Trial:
    """One encoding in one setting.

    Args:
        outcomes: one a seed.
        threshold: normalised headline score at the training length from which a seed has learned.
    """

    encoding: str
    outcomes: tuple[Outcome, ...]
    threshold: float

    @property
    def records(self) -> tuple[Record, ...]:
        """The trainings that count, in the order of seeds."""
        return tuple(one.records[-1] for one in self.outcomes if one.standing == "ok")

    @property
    def learners(self) -> tuple[Record, ...]:
        return tuple(one for one in self.records if learned(one, self.threshold))

    @property
    def unlearned(self) -> int:
        """Seeds that were trained and did not learn."""
        return len(self.records) - len(self.learners)

    @property
    def counted(self) -> tuple[Record, ...]:
        """The trainings that stand for the encoding: those that learned, or all where none did."""
        return self.learners or self.records

    def accuracy(self, length: int, group: str) -> Interval | None:
        """Mean over the trainings that count, of the loss where the task has one; None where none was tested so."""
        return self.mean(length, group, "scores")

    def mean(self, length: int, group: str, of: Tests) -> Interval | None:
        """The same of one kind of test."""
        found = [one.figure for record in self.counted for one in tests(record, of) if one.of(length, group)]
        return mean_interval(found) if found else None

    def steps(self) -> tuple[int | None, ...]:
        """Training steps until a normalised score of 0.9 in the headline group, for each seed; None for never."""
        return tuple(_steps(one) for one in self.records)


@dataclass(frozen=True)
class Course:
    """The trials of one setting: a task, a training length, a model and a recipe."""

    cell: AccuracyCell
    trials: tuple[Trial, ...]

    @property
    def task(self) -> str:
        """The task's name without its options."""
        return self.cell.task.partition("(")[0].strip()

    @property
    def train_length(self) -> int:
        return self.cell.train_length

    @property
    def encodings(self) -> tuple[str, ...]:
        return tuple(one.encoding for one in self.trials)

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(sorted({length for trial in self.trials for one in trial.outcomes for length in _lengths(one)}))

    @property
    def headline(self) -> str:
        return next((reading.headline for reading in self.readings()), "headline")

    @property
    def groups(self) -> tuple[str, ...]:
        """All groups of questions, the headline first."""
        names = (score.group for reading in self.readings() for score in reading.scores)
        return tuple(dict.fromkeys((self.headline, *names)))

    def __str__(self) -> str:
        extra = [f"{key} {value}" for key, value in _changed(self.cell)]
        return ", ".join([f"{self.cell.task}, trained at {self.train_length} tokens", *extra])

    def trial(self, encoding: str) -> Trial:
        """That of one of its encodings."""
        return self.trials[self.encodings.index(encoding)]

    def readings(self) -> Iterator[AccuracyReading]:
        for trial in self.trials:
            for record in trial.records:
                assert isinstance(record.reading, AccuracyReading)
                yield record.reading

    @property
    def by_loss(self) -> bool:
        """Its task is judged by the loss, less of which is better."""
        return any(score.loss is not None for reading in self.readings() for score in reading.scores)

    @property
    def what(self) -> str:
        """What its figures are, in words."""
        return "loss in nats a token" if self.by_loss else "accuracy"

    @property
    def text_sha(self) -> str | None:
        """The hash of the one text that all its records are of; None where there is none."""
        return next((reading.text_sha for reading in self.readings()), None)

    def reference(self, length: int, group: str) -> Score | None:
        """A score whose `blind` and `chance` hold for this length and group."""
        scores = (score for reading in self.readings() for score in reading.scores)
        return next((one for one in scores if one.of(length, group)), None)


def tests(record: Record, of: Tests) -> tuple[Score, ...]:
    """The scores of one kind of test."""
    reading = record.reading
    assert isinstance(reading, AccuracyReading)
    return {"scores": reading.scores, "windowed": reading.windowed, "truncated": reading.truncated}[of]


def courses(found: Iterable[Outcome], threshold: float) -> tuple[Course, ...]:
    """Gather the accuracy outcomes of a suite by setting and encoding, in its order."""
    settings: defaultdict[str, defaultdict[str, list[Outcome]]] = defaultdict(lambda: defaultdict(list))
    for outcome in found:
        if isinstance(outcome.cell, AccuracyCell):
            settings[outcome.cell.setting][outcome.cell.encoding].append(outcome)
    return tuple(_course(encodings, threshold) for encodings in settings.values())


def learned(record: Record, threshold: float) -> bool:
    """Whether the normalised headline score at the training length reaches the threshold."""
    found = headline(record)
    return found is not None and found.learned(threshold)


def headline(record: Record) -> Score | None:
    """The headline score at the training length, None where it was not tested there."""
    assert isinstance(record.cell, AccuracyCell)
    assert isinstance(record.reading, AccuracyReading)
    at = (record.cell.train_length, record.reading.headline)
    return next((one for one in record.reading.scores if one.of(*at)), None)


def _course(encodings: dict[str, list[Outcome]], threshold: float) -> Course:
    trials = tuple(Trial(name, tuple(found), threshold) for name, found in encodings.items())
    cell = trials[0].outcomes[0].cell
    assert isinstance(cell, AccuracyCell)
    return Course(cell, trials)


def _lengths(outcome: Outcome) -> tuple[int, ...]:
    return outcome.cell.test_lengths if isinstance(outcome.cell, AccuracyCell) else ()


def _changed(cell: AccuracyCell) -> Iterator[tuple[str, Any]]:
    if cell.controls:
        yield "with", "controls"
    for part in (cell.model, cell.training):
        yield from part.model_dump(exclude_defaults=True).items()
    if cell.tune:
        yield "learning rate tuned over", " ".join(f"{rate:g}" for rate in cell.tune)
    if cell.backend != "sdpa":
        yield "backend", cell.backend
    if cell.dtype != "float32":
        yield "dtype", cell.dtype


def _steps(record: Record) -> int | None:
    assert isinstance(record.reading, AccuracyReading)
    found = headline(record)
    if found is None or found.blind >= 1 or found.loss is not None:
        return None
    wanted = found.blind + REACHED * (1 - found.blind)
    curve = record.reading.curve
    return next((point.step for point in curve if point.accuracy.get(found.group, 0) >= wanted), None)
