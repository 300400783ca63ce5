"""`run`: measure a suite, then write its report."""

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from grape_bench.commands import (
    COMMANDS,
    DONE,
    FAILED,
    STOPPED,
    add_plugins,
    add_reports,
    add_results,
    execute_plugins,
    number,
)
from grape_bench.errors import UserError

if TYPE_CHECKING:
    from grape_bench.runner import Outcome, RunOptions
    from grape_bench.suite import Suite

_LEAST_GIB = 1  # torch alone takes a quarter
HELP = "measure what a suite asks for and the results lack, then write its report"


def options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("suites", nargs="+", metavar="SUITE", help="a suite's YAML file, such as suites/quick.yaml")
    add_results(parser)
    add_reports(parser)
    add_plugins(parser)
    add(
        "--only",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="measure only such cells, encoding=rope for one; repeat it: one key's values are alternatives, "
        "different keys must all hold",
    )
    add("--fresh", action="store_true", help="measure again what the results have already")
    add("--retry-failed", action="store_true", help="try again what failed before")
    add("--dry-run", action="store_true", help="say what would be measured, and measure nothing")
    add("--effort", choices=("quick", "full"), help="rounds and processes; the suite's own if left out")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto", help="auto takes a GPU if there is one")
    add("--cell", metavar="ID", help="measure one cell in this process, for a debugger; nothing is recorded")
    add(
        "--limit-minutes",
        type=_minutes,
        default=math.inf,
        metavar="M",
        help="stop after so many minutes with exit code 75, so that the same command goes on; what would not end "
        "in time is not begun",
    )
    add(
        "--max-memory",
        type=_gib,
        metavar="GIB",
        help="what one worker may hold, of the GPU where it computes there; a cell that wants more fails as oom",
    )
    add("--executor", default="local", metavar="NAME", help="who measures: see `grape-bench list executors`")
    add("--address", metavar="HOST:PORT", help="of the Ray cluster; RAY_ADDRESS or this machine if left out")


def call(arguments: argparse.Namespace) -> int:
    from grape_bench.registry import Registry
    from grape_bench.suite_files import load_all

    Registry("executors")[arguments.executor]  # a wrong name is refused before torch loads
    suites = load_all(arguments.suites, COMMANDS)
    if arguments.cell and len(suites) > 1:
        raise UserError(f"--cell {arguments.cell}: name the one suite that has this cell")
    options = _options(arguments)
    if not arguments.dry_run:
        execute_plugins()
    if arguments.dry_run or arguments.cell:
        from grape_bench.runner import plan, run_cell

        for suite in suites:
            print(plan(suite, options) if arguments.dry_run else run_cell(suite, options, arguments.cell))
        return DONE
    return _measure(suites, options, arguments.reports)


def _minutes(word: str) -> float:
    if not 0 < (minutes := number(word)) < math.inf:
        raise argparse.ArgumentTypeError(f"must be minutes above 0, not {word!r}")
    return minutes


def _gib(word: str) -> float:
    if not _LEAST_GIB <= (gib := number(word)) < 2**20:
        raise argparse.ArgumentTypeError(f"must be GiB, and a worker needs at least {_LEAST_GIB}, not {word!r}")
    return gib


def _options(arguments: argparse.Namespace) -> "RunOptions":
    from grape_bench import timing
    from grape_bench.runner import RunOptions

    return RunOptions(
        results=arguments.results,
        device=arguments.device,
        fresh=arguments.fresh,
        only=tuple(arguments.only),
        effort=arguments.effort,
        retry_failed=arguments.retry_failed,
        executor=arguments.executor,
        address=arguments.address,
        deadline=timing.seconds() + 60 * arguments.limit_minutes,
        memory_gib=arguments.max_memory,
    )


def _measure(suites: "list[Suite]", options: "RunOptions", reports: Path) -> int:
    from grape_bench.commands.report import write
    from grape_bench.runner import run

    code = DONE
    for suite in suites:
        outcome = run(suite, options)
        counts = (
            f"{outcome.measured} measured, {outcome.known} known, {outcome.skipped} skipped, {outcome.failed} failed"
            if outcome.measured or outcome.skipped or outcome.failed
            else f"nothing to measure, all {outcome.known} cells have their records"
        )
        print(f"{suite.name}: {counts}")
        if outcome.stopped:
            return _stopped(suite, outcome, options, reports)
        write(suite, options.results, reports)
        if outcome.unexpected:
            print(f"{suite.name}: skipped, and not expected by the suite: {'; '.join(outcome.unexpected)}")
        code = FAILED if outcome.failed or outcome.unexpected else code
    return code


def _stopped(suite: "Suite", outcome: "Outcome", options: "RunOptions", reports: Path) -> int:
    from grape_bench.commands.report import write

    print(f"{suite.name}: stopped early: {outcome.stopped}; {outcome.left} left", file=sys.stderr)
    try:
        write(suite, options.results, reports)
    except UserError as error:  # what stopped the run, such as a full disk, may stop its report too
        print(error, file=sys.stderr)
    print(f"{suite.name}: run the same command again to go on", file=sys.stderr)
    return STOPPED
