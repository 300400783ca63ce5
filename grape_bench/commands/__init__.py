"""The contract of a command: its words, what it calls, and what it prints.

A file of this folder is the command of its name. `HELP` says in one sentence what it does, `options(parser)` adds its
words, and `call(arguments)` does it and returns an exit code. What a command needs is imported inside its functions:
--help answers at once, and only what measures loads torch.
"""

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from grape_bench.errors import UserError, allowed

if TYPE_CHECKING:
    from grape_bench.store import Store

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


def number(word: str) -> float:
    """The number that a word is; NaN where it is none, which is within no bounds."""
    try:
        return float(word)
    except ValueError:
        return math.nan


def announce(arguments: argparse.Namespace) -> None:
    """Make plug-ins that were named known to this command and its workers; none is run yet, all are read."""
    from grape_bench import origin
    from grape_bench.registry import Registry

    kinds = ("encoding", "backend")
    origin.announce(origin.locate(f"{kind}s", word) for kind in kinds for word in getattr(arguments, kind, ()))
    for one in origin.named():
        Registry(one.kind)[one.name]


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


def recorded(words: Sequence[str], store: "Store") -> list[str]:
    """The suites that some words name, all with records if none.

    Raises:
        UserError: one of them has no records.
    """
    known, names = store.suites(), [stem(word) for word in words]
    for name in names:
        if name not in known:
            raise UserError(f"{name} has no records under {store.folder}.{allowed(name, known)}")
    return names or known
