"""`compare`: two sides of what was measured."""

import argparse
import math

from grape_bench.commands import DONE, REGRESSED, add_results, number, recorded

HELP = "set two encodings, runs or commits against each other, from their records"


def options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("first", metavar="A", help="an encoding, or the beginning of a run's id or a commit's hash")
    add("second", metavar="B", help="what is set against A: ratios are B over A, differences B less A")
    add("--suite", action="append", default=[], metavar="SUITE", help="only this suite's records; all if left out")
    add(
        "--margin",
        type=_margin,
        metavar="SHARE",
        help="half width of `same`: 0.03 is 3 %% of time, or 0.03 of accuracy",
    )
    add("--force", action="store_true", help="compare environments that differ, and say so")
    add_results(parser)


def _margin(word: str) -> float:
    if not 0 <= (margin := number(word)) < math.inf:
        raise argparse.ArgumentTypeError(f"must be a share of at least 0, not {word!r}")
    return margin


def call(arguments: argparse.Namespace) -> int:
    from grape_bench.compare import versus
    from grape_bench.store import Store

    store = Store(arguments.results)
    records = [one for name in recorded(arguments.suite, store) for one in store.records(name)]
    found = versus(records, arguments.first, arguments.second, margin=arguments.margin, force=arguments.force)
    print(found.text())
    return REGRESSED if found.regressed else DONE
