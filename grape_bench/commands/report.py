"""`report`: pages from records, without measuring."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grape_bench.commands import DONE, add_plugins, add_reports, add_results
from grape_bench.errors import UserError

if TYPE_CHECKING:
    from grape_bench.suite import Suite
    from grape_bench.verification import Verification

HELP = "write the reports of suites from their records, without measuring"
_FORMS = ("pdf", "png", "svg")


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("suites", nargs="*", metavar="SUITE", help="a suite's file or name; all with records if none")
    parser.add_argument(
        "--figures",
        type=_forms,
        default=(),
        metavar="FORMS",
        help="figures as files too, such as pdf,png; svg is always there",
    )
    parser.add_argument("--latex", action="store_true", help="tables as LaTeX files too, beside the figures")
    add_results(parser)
    add_reports(parser)
    add_plugins(parser)


def call(arguments: argparse.Namespace) -> int:
    from grape_bench.store import Store
    from grape_bench.suite_files import SUITES, by_name, load_all, recorded

    store = Store(arguments.results)
    known = store.suites()
    words = arguments.suites or [str(path) for path in recorded(known)]
    if not arguments.suites and (found := store.verifications()):
        write_map(found, arguments.reports)
    elif not words:
        raise UserError(f"no suite of {SUITES}/ has records under {arguments.results}; run one first")
    suites = load_all(map(by_name, words))
    for suite in suites:
        if suite.name not in known:
            raise UserError(f"{suite.name} has no records under {arguments.results}; run it first")
    for suite in suites:
        write(suite, arguments.results, arguments.reports, figures=arguments.figures, latex=arguments.latex)
    return DONE


def write(suite: "Suite", results: Path, reports: Path, **extras: Any) -> None:
    """Write a suite's report, and print where its pages are.

    Args:
        extras: `figures` and `latex` of `report.write`.
    """
    from grape_bench.report import write
    from grape_bench.store import Store

    written = write(suite, Store(results), reports, **extras)
    pages = sorted((path for path in written if path.parent == reports), key=lambda one: one.suffix == ".html")
    print(*pages, sep="\n")


def write_map(found: "list[Verification]", reports: Path) -> None:
    """Write the map of encodings, and print where its pages are."""
    from grape_bench.catalogue import report
    from grape_bench.report import save

    print(*save(report(found), reports), sep="\n")


def _forms(word: str) -> tuple[str, ...]:
    """Forms of figures beside SVG, which is always written."""
    forms = word.split(",")
    if wrong := [form for form in forms if form not in _FORMS]:
        raise argparse.ArgumentTypeError(f"{wrong[0]!r} is no form of figures; these are: {', '.join(_FORMS)}")
    return tuple(form for form in _FORMS if form in forms and form != "svg")
