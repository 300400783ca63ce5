"""`validate`: every number of a bundle once more."""

import argparse
from pathlib import Path

from grape_bench.commands import DONE, FAILED

HELP = "recompute every number of bundles, and say why one is refused (exit 1)"


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bundles", nargs="+", type=Path, metavar="BUNDLE", help="a zip that `bundle` wrote")


def call(arguments: argparse.Namespace) -> int:
    from grape_bench.validate import validate

    refused = False
    for path in arguments.bundles:
        reasons = validate(path)
        print(f"{path}: {'refused' if reasons else 'accepted'}", *(f"  {one}" for one in reasons), sep="\n")
        refused = refused or bool(reasons)
    return FAILED if refused else DONE
