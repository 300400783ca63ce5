"""`list`: what there is."""

import argparse

from grape_bench.commands import DONE, add_plugins, add_results

HELP = "show a table of what there is"
WHAT = ("encodings", "tasks", "backends", "metrics", "suites", "executors", "renderers")


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=WHAT, help="which table")
    add_plugins(parser)
    add_results(parser)


def call(arguments: argparse.Namespace) -> int:
    from grape_bench.listing import plugin_table, suite_table

    print(suite_table() if arguments.what == "suites" else plugin_table(arguments.what))
    if arguments.what == "encodings":
        from grape_bench import catalogue
        from grape_bench.store import Store

        print("", catalogue.text(Store(arguments.results).verifications()), sep="\n")
    return DONE
