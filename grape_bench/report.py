"""From records to a report: sections in order, then files beside each other."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from grape_bench.cell import Cell
from grape_bench.errors import UserError
from grape_bench.latex import latex as as_latex
from grape_bench.record import Record
from grape_bench.registry import Plugin, Registry
from grape_bench.sections.article import article
from grape_bench.sections.backends import backends
from grape_bench.sections.claims import claims
from grape_bench.sections.costs import costs, throughput
from grape_bench.sections.gpu import gpu
from grape_bench.sections.history import history
from grape_bench.sections.learning import learning
from grape_bench.sections.ledger import ledger
from grape_bench.sections.peak import peak
from grape_bench.sections.protocol import protocol
from grape_bench.sections.ranking import ranking
from grape_bench.sections.resolution import resolution
from grape_bench.sections.summary import summary
from grape_bench.store import Store
from grape_bench.suite import Suite, expand
from grape_bench.table import Report, Section
from grape_bench.view import View

SECTIONS: tuple[Callable[[View], Section | None], ...] = (
    ranking,
    summary,
    article,
    claims,
    learning,
    costs,
    throughput,
    peak,
    backends,
    ledger,
    resolution,
    gpu,
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


def write(suite: Suite, store: Store, reports: Path, **extras: Any) -> list[Path]:
    """Write the report of a suite from its records; see `save`."""
    report = build(suite, expand(suite), store.records(suite.name), Registry("metrics"))
    return save(report, reports, **extras)


def save(report: Report, reports: Path, *, figures: Iterable[str] = (), latex: bool = False) -> list[Path]:
    """Render a report into files by every renderer; the same report gives the same bytes.

    Args:
        reports: the folder, such as `reports`; figures go to `reports/<suite>/<figure>.svg`, tables beside them.
        figures: forms of figures beside the SVG that Markdown shows: `pdf`, `png`.
        latex: write each table as `<table>.tex` too.

    Returns:
        What was written, the page last.
    """
    from grape_bench.plots import printed, standalone  # bring matplotlib, which a report that is only built can spare

    files: dict[Path, str | bytes] = {}
    for figure in report.figures():
        files[Path(report.name, f"{figure.id}.svg")] = standalone(figure)
        for form in figures:
            files[Path(report.name, f"{figure.id}.{form}")] = printed(figure, form)
    for table in report.tables() if latex else ():
        files[Path(report.name, f"{table.id}.tex")] = as_latex(table)
    renderers = [plugin.load()() for plugin in Registry("renderers").values()]
    for renderer in sorted(renderers, key=lambda one: one.suffix == ".html"):
        files[Path(report.name + renderer.suffix)] = renderer.render(report)
    for name, content in files.items():
        path = reports / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        except OSError as error:
            raise UserError(f"{path} cannot be written: {error.strerror}; name another folder with --reports") from None
    return [reports / name for name in files]
