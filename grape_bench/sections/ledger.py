"""Every cell without a figure, and every training that did not learn, with the reason."""

from collections import defaultdict
from collections.abc import Iterator

from grape_bench.bench import Setting
from grape_bench.cell import AccuracyCell, Cell, CostCell
from grape_bench.outcome import Outcome
from grape_bench.sections.wording import first_of, share
from grape_bench.table import Entry, Prose, Row, Section, Table
from grape_bench.trial import Course, Trial, headline, learned
from grape_bench.view import View


def ledger(view: View) -> Section:
    """Skipped, failed, missing, did not learn."""
    rows = [*_outcomes(view), *_unlearned(view)]
    kept, foot = first_of(rows)
    caption = "Cells without a figure, and trainings that ended below the threshold"
    table = Table("ledger-table", caption, ("cell", "status", "fault", "reason"), kept, prose=True, foot=foot)
    piece = table if rows else Prose("None: every cell has its figure.")
    return Section("ledger", "Skipped, failed, missing, did not learn", (piece,))


def _outcomes(view: View) -> Iterator[Row]:
    """Cells of one encoding and metric that ended alike are one row, which names them all."""
    found = [(one, "") for one in view.trainings]
    found += [(one, view.where(bench)) for bench in view.benches for one in bench.outcomes]
    alike: defaultdict[tuple[str, ...], list[Outcome]] = defaultdict(list)
    for one, where in found:
        if one.standing != "ok":
            what = _what(one.cell) + (where and f",{where}")
            alike[one.standing, what, one.fault, one.message].append(one)
    for word in ("failed", "skipped", "missing"):
        for (standing, what, fault, message), outcomes in alike.items():
            if standing == word:
                reason = message or ("never tried" if word == "missing" else "no reason was recorded")
                yield Entry(what, _which(outcomes)), Entry(word, tone=word), Entry(fault), Entry(reason)


def _what(cell: Cell) -> str:
    if isinstance(cell, CostCell):
        return f"{cell.encoding}: {cell.metric}, {cell.scope}"
    return f"{cell.encoding}: {cell.task}"


def _which(outcomes: list[Outcome]) -> str:
    """The lengths by setting, or the seeds by training length."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for one in outcomes:
        cell = one.cell
        if isinstance(cell, CostCell):
            found[f" tokens, {Setting.of(cell)}"].append(cell.length)
        else:
            found[f", trained at {cell.train_length} tokens"].append(cell.seed)
    seeds = "" if isinstance(outcomes[0].cell, CostCell) else "seed "
    return "; ".join(f"{seeds}{', '.join(map(str, numbers))}{setting}" for setting, numbers in found.items())


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
            f"normalised {found.group} score {round(found.normalised, 2) + 0.0:.2f}"
            if found
            else "no score at the training length"
        )
        reason = f"{reached} at {course.train_length} tokens, below {view.suite.learned:.2f}"
        if found and found.loss is not None:
            reason = f"loss {share(found.loss)} nats at {course.train_length} tokens, too near to that of a unigram"
        elif found:
            reason += f" (accuracy {share(found.accuracy)}, blind {share(found.blind)})"
        assert isinstance(record.cell, AccuracyCell)
        which = f"seed {record.cell.seed}, trained at {course.train_length} tokens"
        yield Entry(_what(record.cell), which), Entry("did not learn", tone="unlearned"), Entry(""), Entry(reason)
