"""`records`: raw samples for other programs."""

import argparse
import json

from grape_bench.commands import DONE, add_results, recorded

HELP = "print raw records, one line for each sample, as CSV or JSON"


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("suites", nargs="*", metavar="SUITE", help="a suite's file or name; all with records if none")
    add_results(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="a table for a spreadsheet or pandas, as if left out")
    form.add_argument("--json", action="store_true", help="the records whole, as one JSON list")


def call(arguments: argparse.Namespace) -> int:
    from grape_bench.export import csv_text
    from grape_bench.store import Store

    store = Store(arguments.results)
    records = [record for name in recorded(arguments.suites, store) for record in store.records(name)]
    if arguments.json:
        print(json.dumps([record.model_dump(mode="json", by_alias=True) for record in records], indent=1))
    else:
        print(csv_text(records), end="")
    return DONE
