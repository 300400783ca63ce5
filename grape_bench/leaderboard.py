"""The leaderboard: what the records of many machines and people say together."""

from tabulate import tabulate

from grape_bench.pool import Pooled, pool
from grape_bench.printable import on_one_line
from grape_bench.sections.hardware import cost
from grape_bench.sections.learned import accuracy, unlearned
from grape_bench.sections.provenance import gaps, sources
from grape_bench.sections.wording import amount_of
from grape_bench.submissions import Submissions
from grape_bench.suite_format import SuiteFile
from grape_bench.table import Report, Table

_LEARNED: float = SuiteFile.model_fields["learned"].default  # the same for all, whatever a suite says


def report(found: Submissions) -> Report:
    """The page.

    Raises:
        UserError: a line of a folder is no record.
    """
    pooled = pool(found.files)
    trained = [one for one in pooled.boards if one.cell.kind == "accuracy"]
    priced = [one for one in pooled.boards if one.cell.kind == "cost"]
    sections = (
        accuracy(trained, _LEARNED),
        unlearned(trained, _LEARNED),
        cost(priced),
        gaps(pooled.boards),
        sources(pooled.sources, found.refused, pooled.outdated),
    )
    made = tuple(one for one in sections if one)
    return Report("leaderboard", "Leaderboard of position encodings", _about(pooled), made)


def text(page: Report) -> str:
    """For a terminal: the tables of those who were measured, without the smaller print."""
    measured = [section for section in page.sections if section.id not in ("gaps", "sources")]
    tables = [piece for section in measured for piece in section.pieces if isinstance(piece, Table)]
    return "\n".join([on_one_line(page.about), "", *map(_text, tables)])


def _about(pooled: Pooled) -> str:
    counted = [one for one in pooled.sources if one.records]
    records, machines = sum(one.records for one in counted), len({one.machine for one in counted})
    return (
        "Accuracy is pooled over machines and people, seed by seed; costs are ranked within like hardware alone. "
        f"{records:,} records count, of {amount_of(len(counted), 'run')} on {amount_of(machines, 'machine')}."
    )


def _text(table: Table) -> str:
    rows = [[on_one_line(entry.text) for entry in row] for row in table.rows]
    return f"{on_one_line(table.caption)}\n\n{tabulate(rows, table.columns, disable_numparse=True)}\n"
