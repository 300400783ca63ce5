"""The words of the command line, each with its help."""

import argparse

from grape_bench import __version__
from grape_bench.commands import COMMANDS, load

_EXIT = "exit codes: 0 done, 1 some cells failed, 2 wrong input, 3 a regression, 75 stopped, run again to go on"


def parse(words: list[str]) -> argparse.Namespace:
    """The arguments of one command, whose name is in `command`; help and wrong words end the program."""
    # `run` is what happens to suites when no command is named.
    named = words[0] in (*COMMANDS, "-h", "--help", "--version")
    return make_parser().parse_args(words if named else ["run", *words])


def make_parser() -> argparse.ArgumentParser:
    """All commands with their options and help."""
    parser = argparse.ArgumentParser(
        prog="grape-bench",
        description="What position encodings of transformers cost, and what they buy.",
        epilog=f"`grape-bench SUITE...` is short for `grape-bench run SUITE...`. {_EXIT}.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"grape-bench {__version__}")
    made = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        command = load(name)
        text = command.HELP
        sentence = f"{text[0].upper()}{text[1:]}."
        command.options(made.add_parser(name, help=text, description=sentence, epilog=_EXIT, allow_abbrev=False))
    return parser
