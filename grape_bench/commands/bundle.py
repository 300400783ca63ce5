"""`bundle`: a run as one file for others."""

import argparse
from pathlib import Path

from grape_bench.commands import DONE, add_results

HELP = "zip the records of a suite with its report, for others to check"


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("suite", metavar="SUITE", help="a suite's file or name")
    parser.add_argument("--output", type=Path, metavar="ZIP", help="where it goes; SUITE.zip if left out")
    add_results(parser)


def call(arguments: argparse.Namespace) -> int:
    from grape_bench.bundle import bundle
    from grape_bench.store import Store
    from grape_bench.suite_files import by_name

    path = Path(by_name(arguments.suite))
    target = arguments.output or Path(f"{path.stem}.zip")
    made = bundle(path, Store(arguments.results), target)
    print(f"{target}: {made.division} division", *(f"  {change}" for change in made.changes), sep="\n")
    return DONE
