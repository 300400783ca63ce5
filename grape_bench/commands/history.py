"""`history`: records from commit to commit."""

import argparse
import sys
from collections.abc import Iterable

from grape_bench.commands import DONE, REGRESSED, Call, add_results, stem

HELP = "follow records from commit to commit, in asv's pages and in our own words"
_EXPORT = "write records into asv's results, for the commits and machines that they name"
_PUBLISH = "write asv's pages so that they open without a network"
_REGRESSIONS = "say at which commit something became slower, larger or worse, and stayed so"


def options(parser: argparse.ArgumentParser) -> None:
    made = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (text, suites, action) in _ACTIONS.items():
        one = made.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False)
        one.set_defaults(call=action)
        if suites:
            one.add_argument("suites", nargs="*", metavar="SUITE", help=suites)
            add_results(one)


def call(arguments: argparse.Namespace) -> int:
    action: Call = arguments.call
    return action(arguments)


def _export(arguments: argparse.Namespace) -> int:
    from grape_bench.history.export import export
    from grape_bench.store import Store

    done = export(map(stem, arguments.suites), Store(arguments.results))
    print(done.text())
    _say(done.left_out)
    return DONE


def _publish(arguments: argparse.Namespace) -> int:
    from grape_bench.history.publish import publish

    print(publish())
    return DONE


def _regressions(arguments: argparse.Namespace) -> int:
    from grape_bench.history.regressions import regressions
    from grape_bench.store import Store

    found = regressions(map(stem, arguments.suites), Store(arguments.results))
    print(found.text())
    _say(found.left_out)
    return REGRESSED if found.steps else DONE


def _say(left_out: Iterable[str]) -> None:
    for line in left_out:
        print(line, file=sys.stderr)


_ACTIONS: dict[str, tuple[str, str, Call]] = {
    "export": (_EXPORT, "a suite's name; all beside the benchmarks if none", _export),
    "publish": (_PUBLISH, "", _publish),
    "regressions": (_REGRESSIONS, "a suite's file or name; all with records if none", _regressions),
}
