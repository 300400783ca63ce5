"""The table of the source article, measured, with the article's own figures beside it."""

from grape_bench.sections.columns import Column, chosen, memory, tasks, training_time
from grape_bench.sections.quoted import REFERENCE
from grape_bench.sections.wording import ABSENT, UNLEARNED, amount_of
from grape_bench.table import Entry, Facts, Row, Section, Table
from grape_bench.view import View

_FOOT = (
    f"{UNLEARNED} no seed learned, and the mean is over all seeds; otherwise it is over those that learned, ± half of "
    "the 95 % t interval. Below stand the article's figures, which it describes as simulated: they are claims to test, "
    f"its time is relative to {REFERENCE}, and its tasks are other texts of the same kind."
)


def article(view: View) -> Section | None:
    """Accuracy in the three tasks, training time and memory of each encoding."""
    columns = [*tasks(view), *training_time(view), *memory(view)]
    if not columns:
        return None
    rows = tuple(_row(encoding, columns, view) for encoding in view.encodings)
    titles = ("encoding", *(column.title for column in columns), *(["did not learn"] if view.courses else []))
    table = Table("article-table", "Measured here, and what the article claims", titles, rows, foot=_FOOT)
    return Section(
        "article", "The article's table", (Facts(tuple((column.title, column.meaning) for column in columns)), table)
    )


def _row(encoding: str, columns: list[Column], view: View) -> Row:
    entries = [column.fill(encoding) for column in columns]
    return (Entry(encoding), *entries, *([_unlearned(view, encoding)] if view.courses else []))


def _unlearned(view: View, encoding: str) -> Entry:
    trials = [trial for course in chosen(view).values() for trial in course.trials if trial.encoding == encoding]
    trained, not_learned = sum(len(one.records) for one in trials), sum(one.unlearned for one in trials)
    if not trained:
        return ABSENT
    return Entry(f"{not_learned} of {amount_of(trained, 'training')}", tone="unlearned" if not_learned else "muted")
