"""`check`: read suites, and say what is wrong in them."""

import argparse
import sys

from grape_bench.commands import DONE, WRONG, add_plugins
from grape_bench.errors import UserError

HELP = "read suites and say what is wrong in them; nothing is measured"


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("suites", nargs="+", metavar="SUITE", help="a suite's YAML file")
    add_plugins(parser)


def call(arguments: argparse.Namespace) -> int:
    from grape_bench.suite import expand, group
    from grape_bench.suite_files import load_all

    code = DONE
    for word in arguments.suites:
        try:
            [suite] = load_all([word])
            cells = expand(suite)
            print(f"{word}: ok, {len(cells)} cells in {len(group(cells, suite.baseline, suite.vary))} blocks")
        except UserError as error:
            print(error, file=sys.stderr)
            code = WRONG
    return code
