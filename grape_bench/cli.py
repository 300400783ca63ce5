"""The command line: parse, call one command, tell of errors."""

import io
import os
import sys
from collections.abc import Sequence

from grape_bench import interruption
from grape_bench.arguments import make_parser, parse
from grape_bench.commands import DONE, STOPPED, WRONG, announce, load
from grape_bench.errors import UserError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: the words after the program's name; those of the process where it is None.

    Returns:
        0 done, 1 some cells failed, 2 the input was wrong, 3 a regression was found, 75 stopped early and resumable.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a path that is no text is shown nevertheless
    words = list(sys.argv[1:] if argv is None else argv)
    if not words:
        make_parser().print_help(sys.stderr)
        return WRONG
    arguments = parse(words)
    try:
        with interruption.raised():
            announce(arguments)
            code = load(arguments.command).call(arguments)
        sys.stdout.flush()
        return code
    except UserError as error:
        print(error, file=sys.stderr)
        return WRONG
    except KeyboardInterrupt:
        print("stopped; run the same command again to go on", file=sys.stderr)
        return STOPPED
    except BrokenPipeError:  # the reader of our output, such as `head`, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return STOPPED if arguments.command == "run" else DONE
