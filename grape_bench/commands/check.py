"""`check`: read suites, and say what is wrong or unwise in them."""

import argparse
import math
import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

from grape_bench.commands import DONE, FAILED, WRONG, add_plugins, add_results, number
from grape_bench.errors import UserError

if TYPE_CHECKING:
    from grape_bench.finding import Finding

HELP = "read suites and say what is wrong or unwise in them; nothing is measured"


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("suites", nargs="*", metavar="SUITE", help="a suite's YAML file")
    parser.add_argument(
        "--model",
        metavar="MODULE:FACTORY",
        help="check the positions of a torch model of yours instead: pkg.module:factory or path/file.py:factory; "
        "this runs your code, see docs/check-model.md",
    )
    parser.add_argument("--explain", metavar="CODE", help="what a finding such as GB101 means, and what to do about it")
    parser.add_argument(
        "--format",
        choices=("text", "json", "github"),
        default="text",
        help="how findings are printed; github is for annotations of a workflow",
    )
    parser.add_argument(
        "--memory",
        type=_gib,
        metavar="GIB",
        help="of the device that is to run the suites, for what does not fit; this machine's if left out",
    )
    add_results(parser)
    add_plugins(parser)


def _gib(word: str) -> float:
    if not 0 < (gib := number(word)) < math.inf:
        raise argparse.ArgumentTypeError(f"must be GiB above 0, not {word!r}")
    return gib


def call(arguments: argparse.Namespace) -> int:
    from grape_bench.finding import FORMATS

    if arguments.explain:
        print(_explained(arguments.explain))
        return DONE
    if arguments.model:
        return _model(arguments)
    if not arguments.suites:
        raise UserError("name a suite's file, a model with --model, or a code with --explain; docs/check.md lists them")
    found: list[Finding] = []
    code = DONE
    for word in arguments.suites:
        try:
            found += _suite(word, arguments)
        except UserError as error:
            print(error, file=sys.stderr)
            code = WRONG
    if arguments.format != "text" and (shown := FORMATS[arguments.format](found, ())):
        print(shown)
    return code or (FAILED if any(one.severity != "note" for one in found) else DONE)


def _model(arguments: argparse.Namespace) -> int:
    if arguments.suites:
        raise UserError(f"--model {arguments.model}: check suites and a model one after the other")
    from grape_bench.finding import FORMATS
    from grape_bench.model_check.checkup import checkup
    from grape_bench.model_check.factory import made

    print(f"runs the code of {arguments.model}", file=sys.stderr)
    with redirect_stdout(sys.stderr):  # what that code prints is none of our findings
        found = checkup(made(arguments.model))
    if shown := FORMATS[arguments.format](found.findings, found.remarks):
        print(shown)
    if arguments.format == "text":
        print(f"{arguments.model}: {found.summary}")
    return FAILED if found.findings else DONE


def _explained(code: str) -> str:
    from grape_bench.finding import explain
    from grape_bench.lint.catalogue import rules
    from grape_bench.model_check.rules import RULES

    return explain(code, (*rules(), *RULES))


def _suite(word: str, arguments: argparse.Namespace) -> "list[Finding]":
    import os
    from pathlib import Path

    import psutil

    from grape_bench.finding import text
    from grape_bench.lint.diagnosis import diagnose
    from grape_bench.lint.subject import Machine
    from grape_bench.store import Store
    from grape_bench.suite import expand, group
    from grape_bench.suite_files import load_all

    [suite] = load_all([word])
    machine = Machine(arguments.memory or psutil.virtual_memory().total / 2**30, os.cpu_count() or 1)
    found = diagnose(Path(word), suite, machine, Store(arguments.results).records(suite.name))
    if arguments.format == "text":
        cells = expand(suite)
        blocks = group(cells, suite.baseline, suite.vary)
        size = f"{len(cells)} cell{'s' * (len(cells) > 1)} in {len(blocks)} block{'s' * (len(blocks) > 1)}"
        said = f"{len(found)} finding{'s' * (len(found) > 1)}" if found else "ok"
        print("\n".join([*([text(found)] if found else []), f"{word}: {said}, {size}"]))
    return found
