"""`claims`: what records say of a suite's claims."""

import argparse

from grape_bench.commands import DONE, add_results
from grape_bench.errors import UserError

HELP = "say of each claim of suites whether their records support or refute it"


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("suites", nargs="+", metavar="SUITE", help="a suite's file or name")
    add_results(parser)


def call(arguments: argparse.Namespace) -> int:
    from grape_bench.claims import text, verdicts
    from grape_bench.registry import Registry
    from grape_bench.store import Store
    from grape_bench.suite import expand
    from grape_bench.suite_files import by_name, load_all
    from grape_bench.view import View

    suites = load_all(map(by_name, arguments.suites))
    for suite in suites:
        if not suite.claims:
            raise UserError(f"{suite.name} claims nothing; docs/suites.md says how a suite holds claims")
    for suite in suites:
        records = Store(arguments.results).records(suite.name)
        found = verdicts(View.of(suite, expand(suite), records, Registry("metrics")))
        print(f"{suite.name}: {suite.title}", text(found), sep="\n\n")
    return DONE
