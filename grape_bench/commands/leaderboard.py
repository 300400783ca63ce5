"""`leaderboard`: many machines and people on one page."""

import argparse
import sys
from pathlib import Path

from grape_bench.commands import DONE, FAILED, add_reports

HELP = "merge the records of machines and people, and write who leads in what"


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "places",
        nargs="*",
        type=Path,
        default=[Path("results")],
        metavar="DIR_OR_BUNDLE",
        help="a folder of records, or a bundle, which is validated first; results/ if none",
    )
    add_reports(parser)


def call(arguments: argparse.Namespace) -> int:
    from grape_bench import leaderboard
    from grape_bench.printable import on_one_line
    from grape_bench.report import save
    from grape_bench.submissions import gathered

    with gathered(arguments.places) as found:
        for name, reasons in found.refused.items():
            print(on_one_line(f"{name}: refused"), *reasons, sep="\n  ", file=sys.stderr)
        if found.files:
            page = leaderboard.report(found)
            print(leaderboard.text(page), *save(page, arguments.reports), sep="\n")
    return FAILED if found.refused else DONE
