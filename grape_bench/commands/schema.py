"""`schema`: the form of a suite's file."""

import argparse
import json

from grape_bench.commands import DONE

HELP = "print the JSON schema of a suite's file, for editors"


def options(parser: argparse.ArgumentParser) -> None:
    """It has none."""


def call(arguments: argparse.Namespace) -> int:
    from grape_bench.suite import schema

    print(json.dumps(schema(), indent=2))
    return DONE
