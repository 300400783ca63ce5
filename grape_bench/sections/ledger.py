"""Every cell without a figure, and every training that did not learn, with the reason."""

from collections.abc import Iterator

from grape_bench.bench import Bench, Setting
from grape_bench.cell import AccuracyCell, Cell, CostCell
from grape_bench.outcome import Outcome
from grape_bench.sections.wording import amount_of, share
from grape_bench.table import Entry, Prose, Row, Section, Table
from grape_bench.trial import Course, Trial, headline, learned
from grape_bench.view import View

_MOST = 200  # rows; a suite that was hardly begun has thousands of missing cells


def ledger(view: View) -> Section:
    """Skipped, failed, missing, did not learn."""
    rows = [*_outcomes(view), *_unlearned(view)]
    if not rows:
        return Section(
            "ledger", "Skipped, failed, missing, did not learn", (Prose("None: every cell has its figure."),)
        )
    foot = f"{amount_of(len(rows) - _MOST, 'further row')} left out." if len(rows) > _MOST else ""
    table = Table(
        id="ledger-table",
        caption="Cells without a figure, and trainings that ended below the threshold",
        columns=("cell", "status", "fault", "reason"),
        rows=tuple(rows[:_MOST]),
        prose=True,
        foot=foot,
    )
    return Section("ledger", "Skipped, failed, missing, did not learn", (table,))


def describe(cell: Cell) -> str:
    """A cell in words."""
    if isinstance(cell, CostCell):
        return f"{cell.encoding}: {cell.metric}, {cell.scope}, {cell.length} tokens, {Setting.of(cell)}"
    return f"{cell.encoding}: {cell.task}, seed {cell.seed}, trained at {cell.train_length} tokens"


def _outcomes(view: View) -> Iterator[Row]:
    several = len(view.benches) > 1
    found = [(one, "") for one in view.trainings]
    found += [(one, _where(bench) if several else "") for bench in view.benches for one in bench.outcomes]
    for word in ("failed", "skipped", "missing"):
        for one, where in found:
            if one.standing == word:
                yield _row(one, where)


def _row(one: Outcome, where: str) -> Row:
    assert one.standing != "ok"
    reason = one.message or ("never tried" if one.standing == "missing" else "no reason was recorded")
    return Entry(describe(one.cell) + where), Entry(one.standing, tone=one.standing), Entry(one.fault), Entry(reason)


def _where(bench: Bench) -> str:
    return f", on {bench.environment.machine}" if bench.environment else ""


def _unlearned(view: View) -> Iterator[Row]:
    for course in view.courses:
        for trial in course.trials:
            yield from _plateaus(view, course, trial)


def _plateaus(view: View, course: Course, trial: Trial) -> Iterator[Row]:
    for record in trial.records:
        if learned(record, trial.threshold):
            continue
        found = headline(record)
        reached = (
            f"normalised {found.group} score {found.normalised:.2f}" if found else "no score at the training length"
        )
        reason = f"{reached} at {course.train_length} tokens, below {view.suite.learned:.2f}"
        reason += f" (accuracy {share(found.accuracy)}, blind {share(found.blind)})" if found else ""
        assert isinstance(record.cell, AccuracyCell)
        yield Entry(describe(record.cell)), Entry("did not learn", tone="unlearned"), Entry(""), Entry(reason)
