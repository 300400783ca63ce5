"""The contract of a command: its words, what it calls, and what it prints.

A file of this folder is the command of its name. `HELP` says in one sentence what it does, `options(parser)` adds its
words, and `call(arguments)` does it and returns an exit code. What a command needs is imported inside its functions:
--help answers at once, and only what measures loads torch.
"""

import argparse
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

COMMANDS = (
    "run", "check", "list", "verify", "report", "records", "compare", "claims", "bundle", "validate", "leaderboard",
    "history", "schema",
)  # fmt: skip
DONE, FAILED, WRONG, REGRESSED, STOPPED = 0, 1, 2, 3, 75

Call = Callable[[argparse.Namespace], int]


class Command(Protocol):
    """A file of this folder."""

    HELP: str

    def options(self, parser: argparse.ArgumentParser) -> None:
        """Add its words."""

    def call(self, arguments: argparse.Namespace) -> int:
        """Do it."""


def load(name: str) -> Command:
    """The command of one of the `COMMANDS`."""
    return cast(Command, import_module(f"grape_bench.commands.{name}"))


def add_results(parser: argparse.ArgumentParser) -> None:
    """Where records are."""
    parser.add_argument(
        "--results", type=Path, default=Path("results"), metavar="DIR", help="where records are (results/)"
    )


def add_reports(parser: argparse.ArgumentParser) -> None:
    """Where reports go."""
    parser.add_argument(
        "--reports", type=Path, default=Path("reports"), metavar="DIR", help="where reports go (reports/)"
    )


def add_plugins(parser: argparse.ArgumentParser, *kinds: str) -> None:
    """Plug-ins from files, of all kinds that come from outside, or of these."""
    for kind in kinds or ("encoding", "backend"):
        parser.add_argument(
            f"--{kind}",
            action="append",
            default=[],
            metavar="FILE.py:CLASS",
            help=f"take the class of a file of yours as one more {kind}; repeat it for several",
        )


def announce(arguments: argparse.Namespace) -> None:
    """Make plug-ins that were named known to this command and its workers; none is run yet, all are read."""
    from grape_bench.origin import announce, locate, named
    from grape_bench.registry import Registry

    kinds = ("encoding", "backend")
    announce(locate(f"{kind}s", word) for kind in kinds for word in getattr(arguments, kind, ()))
    for origin in named():
        Registry(origin.kind)[origin.name]


def execute_plugins() -> None:
    """Run the files that were named once, so that what is wrong in them is told before anything is measured."""
    from grape_bench.origin import named
    from grape_bench.registry import Registry

    for origin in named():
        print(f"runs the code of {origin.place}, for its class {origin.target}", file=sys.stderr)
        Registry(origin.kind)[origin.name].load()


def stem(word: str) -> str:
    """A suite's name, of its file or as it is."""
    return Path(word).stem if word.endswith((".yaml", ".yml")) else word
