"""What longer inputs do: each length beside its controls, and the change from the training length."""

from collections.abc import Iterator
from typing import NamedTuple

from grape_bench.interval import joint, mean_interval
from grape_bench.ranking import SCORE_MARGIN, by_seed, judge
from grape_bench.record import Record
from grape_bench.sections.wording import ABSENT, MARKS, accuracy, mean, share, tested
from grape_bench.table import Entry, Row, Table
from grape_bench.trial import Course, Tests, Trial, tests

_WORDS: dict[Tests, str] = {"scores": "", "windowed": ", window", "truncated": ", cut"}


class Test(NamedTuple):
    """A column: one kind of test at one length (tokens)."""

    length: int
    of: Tests


def beyond(course: Course, anchor: str) -> Iterator[Table]:
    """A table of the headline figures beyond the training length, for a course with controls or with a loss."""
    columns = tuple(_columns(course))
    if len(columns) < 2 or not (course.by_loss or course.cell.controls):
        return
    titles = (
        "encoding",
        tested(course, course.train_length),
        *(f"{one.length}{_WORDS[one.of]}" for one in columns[1:]),
    )
    rows = tuple(_row(course, trial, columns) for trial in course.trials)
    caption = f"{course.what.capitalize()} in {course.headline} beyond the training length, in tokens, beside controls"
    yield Table(anchor, caption, titles, rows, foot=_foot(course))


def _columns(course: Course) -> Iterator[Test]:
    """The training length, then each longer one with the controls that it has."""
    yield Test(course.train_length, "scores")
    for length in course.lengths:
        if length > course.train_length:
            yield Test(length, "scores")
            yield from (Test(length, of) for of in ("windowed", "truncated") if course.cell.controls)


def _row(course: Course, trial: Trial, columns: tuple[Test, ...]) -> Row:
    first, *longer = columns
    group = course.headline
    return (
        Entry(trial.encoding),
        accuracy(trial, first.length, group),
        *(_entry(course, trial, one, len(longer)) for one in longer),
    )


def _entry(course: Course, trial: Trial, test: Test, family: int) -> Entry:
    """The mean, and below it how far it is from that at the training length, seed by seed."""
    found = trial.mean(test.length, course.headline, test.of)
    if found is None:
        return accuracy(trial, test.length, course.headline) if test.of == "scores" else ABSENT
    gains = [one for record in by_seed(trial.counted).values() for one in _gains(record, course, test)]
    change = mean_interval(gains, joint(family))
    word = judge(change, (-SCORE_MARGIN, SCORE_MARGIN), ("worse", "better"))
    moved = round(-change.mid if course.by_loss else change.mid, 3) + 0.0  # + 0.0: never -0.000
    note = f"{word}, {moved:+.3f}" + (f" ± {share(change.half)}" if change.known else "")
    return Entry(f"{MARKS[word]} {mean(found)}", note, word if trial.learners else "unlearned")


def _gains(record: Record, course: Course, test: Test) -> Iterator[float]:
    """What a seed gained over its own score at the training length, more being better."""
    trained = [one for one in tests(record, "scores") if one.of(course.train_length, course.headline)]
    longer = [one for one in tests(record, test.of) if one.of(test.length, course.headline)]
    yield from (after.merit - before.merit for before, after in zip(trained, longer, strict=False))


def _foot(course: Course) -> str:
    controls = (
        "window: no query sees a key as far away as the training length or further, layer by layer. cut: the model "
        "sees the last tokens alone, as many as in training, and is asked the same. Who is no better on the whole "
        "input than there makes nothing of it. "
    )
    text = f" Text {course.text_sha}." if course.text_sha else ""
    return (
        f"{controls if course.cell.controls else ''}Below each mean is the change from the training length, seed by "
        f"seed; the intervals of a row's changes hold together at 95 %. Better, worse, same or unclear: against a "
        f"margin of {share(SCORE_MARGIN)}.{text}"
    )
