"""The columns of the article's table."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from grape_bench.bench import Bench, Grid, value
from grape_bench.sections.costs import representatives
from grape_bench.sections.quoted import REFERENCE, Quoted, quoted
from grape_bench.sections.wording import ABSENT, MARKS, accuracy, factor, quantity, share, span, standing
from grape_bench.table import Entry
from grape_bench.trial import Course
from grape_bench.view import View

TASKS = {"A": "short_text", "B": "long_text", "C": "registers"}


class Column(NamedTuple):
    """A column, and the sentence that says what stands in it."""

    title: str
    meaning: str
    fill: Callable[[str], Entry]


def chosen(view: View) -> dict[str, Course]:
    """The setting that stands for each of the article's tasks: the one trained at the greatest length."""
    found = {}
    for letter, task in TASKS.items():
        courses = [one for one in view.courses if one.task == task]
        if courses:
            found[letter] = max(courses, key=lambda one: one.train_length)
    return found


def tasks(view: View) -> Iterator[Column]:
    """A and B at the training length, C at twice it."""
    for letter, course in chosen(view).items():
        length = course.train_length * (2 if letter == "C" else 1)
        title = "C at 2×" if letter == "C" else letter
        if length not in course.lengths:
            continue
        where = f"at {length} tokens, trained at {course.train_length}"
        meaning = f"accuracy in {course.headline} of {course.task} {where}."
        yield Column(title, meaning, _accuracy(view, letter, course, length))


def training_time(view: View) -> Iterator[Column]:
    """Time of a training step over that of the article's reference, or of the baseline in a suite without it."""
    reference = REFERENCE if REFERENCE in view.suite.encodings else view.suite.baseline
    found = largest(view, "model", "train_step_ms")
    if not found or not reference:
        return
    bench, grid, length = found
    instead = "" if reference == REFERENCE else f", in place of {REFERENCE}, which this suite does not have"
    where = f"at {length} tokens ({grid.setting}){view.where(bench)}"
    meaning = f"train_step_ms over that of {reference}{instead}, {where}."

    def fill(encoding: str) -> Entry:
        found = bench.against(grid, encoding, length, reference)
        said = _said(quoted(encoding, view.encodings), "time")
        if encoding == reference and value(grid.outcomes.get((encoding, length))):
            return Entry("1", said, "reference")
        if found is None:
            return _absent(grid, encoding, length, said)
        return Entry(f"{MARKS[found.word]} {factor(found.interval)}", _join(span(found.interval), said), found.word)

    yield Column("relative training time", meaning, fill)


def memory(view: View) -> Iterator[Column]:
    """Peak memory less that of the baseline."""
    baseline = view.suite.baseline
    found = largest(view, "model", "peak_mib") or largest(view, "attention", "peak_mib")
    if not found or not baseline:
        return
    bench, grid, length = found
    what = "a training step of the model" if grid.scope == "model" else "the attention alone, forward and backward"
    where = f"at {length} tokens ({grid.setting}){view.where(bench)}"
    meaning = f"peak MiB of {what} less that of {baseline}, {where}."

    def fill(encoding: str) -> Entry:
        peak, base = (value(grid.outcomes.get((one, length))) for one in (encoding, baseline))
        if peak is None or base is None:
            return _absent(grid, encoding, length)
        if encoding == baseline:
            return Entry("0 MiB", f"of {quantity(base, 'MiB')}", "reference")
        return Entry(f"{'+' if peak >= base else '−'}{quantity(abs(peak - base), 'MiB')}")

    yield Column("memory added", meaning, fill)


def _accuracy(view: View, letter: str, course: Course, length: int) -> Callable[[str], Entry]:
    trials = {trial.encoding: trial for trial in course.trials}
    field = {"A": "short", "B": "long", "C": "doubled"}[letter]

    def fill(encoding: str) -> Entry:
        said = _said(quoted(encoding, view.encodings), field)
        if encoding not in trials:
            return Entry(ABSENT.text, said, ABSENT.tone)
        entry = accuracy(trials[encoding], length, course.headline)
        return Entry(entry.text, _join(entry.note, said), entry.tone)

    return fill


def largest(view: View, scope: str, metric: str) -> tuple[Bench, Grid, int] | None:
    """Where the newest machine measured this metric at its largest setting, and the greatest length there."""
    for bench in view.benches:
        grids = next((grids for key, grids in bench.metrics().items() if key == (scope, metric)), ())
        if grids:
            grid = representatives(grids)[0]
            return bench, grid, grid.lengths[-1]
    return None


def _absent(grid: Grid, encoding: str, length: int, said: str = "") -> Entry:
    outcome = grid.outcomes.get((encoding, length))
    if outcome is None:
        return Entry(ABSENT.text, said, ABSENT.tone)
    if outcome.standing == "ok":
        return Entry("no reference", said, "muted")
    entry = standing([outcome])
    return Entry(entry.text, _join(entry.note, said), entry.tone)


def _said(row: Quoted | None, field: str) -> str:
    if row is None:
        return ""
    figure = getattr(row, field)
    return f"article {figure:.2f}" if field == "time" else f"article {share(figure)}"


def _join(*notes: str) -> str:
    return ", ".join(filter(None, notes))
