"""From records to a report: sections in order, then files beside each other."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from grape_bench.cell import Cell
from grape_bench.record import Record
from grape_bench.registry import Plugin, Registry
from grape_bench.sections.article import article
from grape_bench.sections.costs import costs, throughput
from grape_bench.sections.history import history
from grape_bench.sections.learning import learning
from grape_bench.sections.ledger import ledger
from grape_bench.sections.protocol import protocol
from grape_bench.sections.resolution import resolution
from grape_bench.sections.summary import summary
from grape_bench.store import Store
from grape_bench.suite import Suite, expand
from grape_bench.table import Report, Section
from grape_bench.view import View

SECTIONS: tuple[Callable[[View], Section | None], ...] = (
    summary,
    article,
    learning,
    costs,
    throughput,
    ledger,
    resolution,
    protocol,
    history,
)


def build(suite: Suite, cells: Iterable[Cell], records: Iterable[Record], metrics: Mapping[str, Plugin]) -> Report:
    """Say all that the records have to say on a suite.

    Args:
        cells: what the suite asks for; records of other cells are passed over.
        metrics: the plug-ins of metrics, for units and derived metrics.
    """
    view = View.of(suite, cells, records, metrics)
    sections = (make(view) for make in SECTIONS)
    return Report(suite.name, suite.title, suite.about or "", tuple(one for one in sections if one))


def write(suite: Suite, store: Store, reports: Path) -> list[Path]:
    """Write the report of a suite by every renderer, and its figures beside it.

    Args:
        reports: the folder, such as `reports`; the figures go to `reports/<suite>/<figure>.svg`.

    Returns:
        What was written, the page last.
    """
    report = build(suite, expand(suite), store.records(suite.name), Registry("metrics"))
    return save(report, reports)


def save(report: Report, reports: Path) -> list[Path]:
    """Render a report into files; the same report gives the same bytes."""
    from grape_bench.plots import standalone  # brings matplotlib, which a report that is only built does not need

    texts = {Path(report.name, f"{figure.id}.svg"): standalone(figure) for figure in report.figures()}
    renderers = [plugin.load()() for plugin in Registry("renderers").values()]
    for renderer in sorted(renderers, key=lambda one: one.suffix == ".html"):
        texts[Path(report.name + renderer.suffix)] = renderer.render(report)
    for name, text in texts.items():
        path = reports / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    return [reports / name for name in texts]
