"""`compare`: two sides of what was measured."""

import argparse
from pathlib import Path

from grape_bench.commands import DONE, REGRESSED, add_results

HELP = "set two encodings, runs or commits against each other, from their records"


def options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("first", metavar="A", help="an encoding, or the beginning of a run's id or a commit's hash")
    add("second", metavar="B", help="what is set against A: ratios are B over A, differences B less A")
    add("--suite", action="append", default=[], metavar="SUITE", help="only this suite's records; all if left out")
    add("--margin", type=float, metavar="SHARE", help="half width of `same`: 0.03 is 3 %% of time, or 0.03 of accuracy")
    add("--force", action="store_true", help="compare environments that differ, and say so")
    add_results(parser)


def call(arguments: argparse.Namespace) -> int:
    from grape_bench.compare import versus
    from grape_bench.store import Store

    store = Store(arguments.results)
    records = [one for name in arguments.suite or store.suites() for one in store.records(Path(name).stem)]
    found = versus(records, arguments.first, arguments.second, margin=arguments.margin, force=arguments.force)
    print(found.text())
    return REGRESSED if found.regressed else DONE
