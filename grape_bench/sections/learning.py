"""What the encodings buy: accuracy, or loss, by task, group and length."""

import math
import statistics
from collections.abc import Iterator

from grape_bench.record import AccuracyReading
from grape_bench.score import LEARNED_LOSS, Score
from grape_bench.sections.beyond import beyond
from grape_bench.sections.cells import trial_cells
from grape_bench.sections.wording import ABSENT, UNLEARNED, accuracy, amount_of, share, tested, unlearned
from grape_bench.table import Curve, Entry, Figure, Heading, Panel, Piece, Prose, Row, Section, Table
from grape_bench.trial import Course, Trial
from grape_bench.view import View

_READING = (
    "Mean over the seeds that learned ± half of the 95 % t interval; a single seed has no interval. "
    f"{UNLEARNED} marks encodings of which no seed learned: their figures are means over all seeds."
)
_LOSSES = (
    "A language model is judged by its loss in nats a token, less being better. Its normalised score is the share that "
    f"it saves of a unigram's loss, and it has learned from {LEARNED_LOSS:g} on. Figures on two texts are never pooled."
)


def learning(view: View) -> Section | None:
    """A figure and a table for each group of questions, task by task."""
    if not view.courses:
        return None
    learned = (
        "An encoding has learned, seed by seed, when its normalised headline score at the training length is at least "
        f"{view.suite.learned:.2f}: (accuracy − blind) / (1 − blind), blind being what a reader without positions can "
        "reach."
    )
    pieces = [
        piece for number, course in enumerate(view.courses, 1) for piece in _course(view, course, f"task-{number}")
    ]
    losses = [Prose(_LOSSES)] if any(one.by_loss for one in view.courses) else []
    strange = [Prose(f"Left out: {sentence}.") for sentence in view.other_texts]
    return Section("accuracy", "Accuracy", (Prose(f"{learned} {_READING}"), *losses, *strange, *pieces))


def _course(view: View, course: Course, anchor: str) -> Iterator[Piece]:
    yield Heading(str(course))
    if any(trial.records for trial in course.trials):
        yield _figure(view, course, anchor)
        yield from beyond(course, f"{anchor}-beyond")
    for number, group in enumerate(course.groups, 1):
        yield _table(course, group, f"{anchor}-group-{number}")


def _table(course: Course, group: str, anchor: str) -> Table:
    headline = group == course.headline
    columns = ["encoding", *(tested(course, length) for length in course.lengths)]
    columns += ["did not learn"] if headline else []
    columns += ["steps to 0.9"] if headline and not course.by_loss else []
    columns += ["learning rate"] if headline and course.cell.tune else []
    behind = (trial_cells(course, trial, group, f"{anchor}-{number}") for number, trial in enumerate(course.trials, 1))
    rows = [_row(course, trial, group, cells) for trial, cells in zip(course.trials, behind, strict=True)]
    rows += [_level(course, group, "blind", len(columns)), _level(course, group, "chance", len(columns))]
    name = f"{group}, the headline group" if headline else group
    caption = f"{course.what.capitalize()} in {name}, by test length in tokens"
    return Table(anchor, caption, tuple(columns), tuple(rows))


def _row(course: Course, trial: Trial, group: str, cells: Table) -> Row:
    headline = group == course.headline
    entries = [accuracy(trial, length, group) for length in course.lengths]
    entries += [unlearned(trial)] if headline else []
    entries += [_steps(trial)] if headline and not course.by_loss else []
    entries += [_rate(trial)] if headline and course.cell.tune else []
    return (Entry(trial.encoding, behind=cells), *entries)


def _rate(trial: Trial) -> Entry:
    """The learning rates that tuning chose."""
    rates = {one.reading.lr for one in trial.records if isinstance(one.reading, AccuracyReading)}
    return Entry(", ".join(f"{rate:g}" for rate in sorted(rates))) if rates else ABSENT


def _steps(trial: Trial) -> Entry:
    steps = trial.steps()
    reached = [one for one in steps if one is not None]
    if not steps:
        return ABSENT
    if not reached:
        return Entry("never", tone="muted")
    missed = (
        f"{len(steps) - len(reached)} of {amount_of(len(steps), 'seed')} never" if len(reached) < len(steps) else ""
    )
    return Entry(f"{statistics.median(reached):.0f}", missed)


def _level(course: Course, group: str, which: str, columns: int) -> Row:
    found = [course.reference(length, group) for length in course.lengths]
    levels = [Entry(share(_height(one, which)), tone="muted") if one else ABSENT for one in found]
    name = "chance" if which == "chance" else "unigram" if course.by_loss else "blind ceiling"
    padding = [Entry("")] * (columns - 1 - len(levels))
    return (Entry(name, tone="muted"), *levels, *padding)


def _height(score: Score, which: str) -> float:
    """Of the level `blind` or `chance`."""
    if score.blind_nats is None:
        return score.blind if which == "blind" else score.chance
    return score.blind_nats if which == "blind" else -math.log(score.chance)


def _figure(view: View, course: Course, anchor: str) -> Figure:
    group = course.headline
    curves = (_curve(view, course, trial) for trial in course.trials)
    reference = course.reference(course.train_length, group)
    names = ("unigram" if course.by_loss else "blind ceiling", "blind"), ("chance", "chance")
    levels = tuple((name, _height(reference, which)) for name, which in names) if reference else ()
    panel = Panel("", tuple(one for one in curves if one.x), levels, ("trained", course.train_length))
    caption = (
        f"{course.task}: {course.what} in {group} against test length. Whiskers are 95 % t intervals over seeds; "
        f"a dotted line is an encoding of which no seed learned."
    )
    axes = "test length, tokens", f"{course.what} in {group}"
    return Figure(f"{anchor}-accuracy", caption, *axes, (panel,), share=not course.by_loss)


def _curve(view: View, course: Course, trial: Trial) -> Curve:
    points = [(length, trial.accuracy(length, course.headline)) for length in course.lengths]
    found = [(length, one) for length, one in points if one is not None]
    return Curve(
        label=trial.encoding,
        slot=view.encodings.index(trial.encoding),
        x=tuple(float(length) for length, _ in found),
        y=tuple(one.mid for _, one in found),
        low=tuple(one.low for _, one in found),
        high=tuple(one.high for _, one in found),
        doubtful=not trial.learners,
    )
