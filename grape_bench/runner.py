"""A run of a suite: what is missing is measured, and recorded."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from grape_bench import timing
from grape_bench.cell import AccuracyCell, Block
from grape_bench.environment import Environment
from grape_bench.errors import UserError
from grape_bench.executors import Executor
from grape_bench.loop import Loop
from grape_bench.origin import named
from grape_bench.progress import Progress
from grape_bench.record import Record, RunStart, run_name
from grape_bench.registry import Registry
from grape_bench.schedule import earlier_failures, estimate, pending, words
from grape_bench.store import Store
from grape_bench.suite import Suite, expand, group, narrow
from grape_bench.suite_filter import passes
from grape_bench.tuning import TUNING_SEED, missing
from grape_bench.worker import Protocol, measure

_SHARED_GPU = 4  # trainings side by side on one GPU


@dataclass(frozen=True)
class RunOptions:
    """What the command line adds to a suite.

    Args:
        results: folder of the records; device: `auto`, `cpu` or `cuda`.
        fresh: measure again what is on record; only: filters `key=value`; effort: None for the suite's own.
        retry_failed: try failed cells once more; executor: name of a plug-in.
    """

    results: Path = Path("results")
    device: str = "auto"
    fresh: bool = False
    only: tuple[str, ...] = ()
    effort: str | None = None
    retry_failed: bool = False
    executor: str = "local"


@dataclass(frozen=True)
class Outcome:
    """What a run came to, in cells.

    Args:
        known: cells that had their records before; failed: of this run, and of earlier ones that were not tried again.
        unexpected: what was skipped in this run beside the skips that the suite expects, if it lists any.
        stopped: interrupted, to be continued by the same command.
    """

    measured: int = 0
    known: int = 0
    skipped: int = 0
    failed: int = 0
    unexpected: tuple[str, ...] = ()
    stopped: bool = False


def run(suite: Suite, options: RunOptions) -> Outcome:
    """Measure what a suite asks for and its records lack.

    Raises:
        UserError: a filter names nothing, the records cannot be written, or another run writes to them.
    """
    blocks, protocol = _blocks(suite, options), _protocol(suite, options)
    executor = _executor(options)
    try:
        environment = _observe(executor, protocol)
        store = Store(options.results)
        with store.writing(environment.machine, suite.name) as writer:
            lines = list(store.lines(suite.name, environment.machine))
            todo = _todo(blocks, lines, environment, protocol, options)
            protocol = replace(protocol, checkpoints=str(writer.path.parent / "checkpoints"))
            failures = 0 if options.retry_failed or options.fresh else earlier_failures(blocks, lines, environment)
            measured = {cell.id for block in todo for cell in block.cells}
            known = len({cell.id for block in blocks for cell in block.cells} - measured)
            if not todo:
                return Outcome(known=known, failed=failures)
            start = _start(suite, options, protocol)
            writer.append([start])
            records = [line for line in lines if isinstance(line, Record)]
            with Progress(suite.name, todo, records, _slots(environment)) as progress:
                loop = Loop(suite, start, writer, executor, protocol, environment, progress, _slots(environment))
                loop.records += [] if options.fresh else records
                stopped = loop.run(todo)
            ok, skipped, failed = (len(loop.cells[status]) for status in ("ok", "skipped", "failed"))
            return Outcome(ok, known, skipped, failed + failures, _unexpected(suite, todo, loop), stopped)
    finally:
        executor.close()


def plan(suite: Suite, options: RunOptions) -> str:
    """What a run would do: numbers of cells and blocks by kind, and an estimate of time once there are records."""
    blocks, protocol = _blocks(suite, options), _protocol(suite, options)
    executor = _executor(options)
    try:
        environment = _observe(executor, protocol)
    finally:
        executor.close()
    lines = list(Store(options.results).lines(suite.name, environment.machine))
    todo = _todo(blocks, lines, environment, protocol, options)
    rows = [f"{suite.name}: {_count(blocks)}; to measure: {_count(todo)}"]
    asked, left = _kinds(blocks), _kinds(todo)
    for kind in dict.fromkeys([*asked, *left]):  # tuning is asked for by what it decides
        rows.append(f"  {kind}: {_count(asked.get(kind, []))}; to measure: {_count(left.get(kind, []))}")
    took, unknown = estimate(todo, [line for line in lines if isinstance(line, Record)], _slots(environment))
    rows.append(f"  estimate: {words(took)}" + (f", and {unknown} blocks like none on record" if unknown else ""))
    return "\n".join(rows)


def _unexpected(suite: Suite, blocks: Iterable[Block], loop: Loop) -> tuple[str, ...]:
    if not suite.skips:
        return ()
    skipped = {cell.id: cell for block in blocks for cell in block.cells if cell.id in loop.cells["skipped"]}
    surprises = [one for one in skipped.values() if not any(passes(one, skip.only) for skip in suite.skips)]
    return tuple(dict.fromkeys(f"{one.encoding}: {one.metric}" for one in surprises))


def run_cell(suite: Suite, options: RunOptions, cell_id: str) -> str:
    """Measure one cell in this process, for a debugger; nothing is recorded.

    Raises:
        UserError: no cell of the suite has an id that starts so, or several have.
    """
    cells = [cell for cell in expand(suite) if cell.id.startswith(cell_id)]
    if len(cells) != 1:
        found = f"{len(cells)} cells have ids that start with it" if cells else "no cell has it"
        raise UserError(f"--cell {cell_id}: {found}; `grape-bench records {suite.name}` and reports name ids")
    done = measure(Block((cells[0],)), _protocol(suite, options), lambda note: None)
    (result,) = done.results
    return result.reading.model_dump_json(indent=2) if result.reading else f"{result.status}: {result.message}"


def _blocks(suite: Suite, options: RunOptions) -> list[Block]:
    blocks = group(expand(suite), suite.baseline, suite.vary)
    return narrow(blocks, options.only) if options.only else blocks


def _protocol(suite: Suite, options: RunOptions) -> Protocol:
    effort = options.effort or suite.effort
    processes = suite.processes or timing.EFFORTS[effort].processes
    return Protocol(effort=effort, device=options.device, threads=suite.threads, processes=processes, plugins=named())


def _executor(options: RunOptions) -> Executor:
    executor: Executor = Registry("executors")[options.executor].load()()
    return executor


def _observe(executor: Executor, protocol: Protocol) -> Environment:
    try:
        return executor.observe(protocol)
    except RuntimeError as error:
        raise UserError(str(error)) from None


def _todo(
    blocks: list[Block],
    lines: Iterable[Record | RunStart],
    environment: Environment,
    protocol: Protocol,
    options: RunOptions,
) -> list[Block]:
    processes, lines = protocol.processes, [] if options.fresh else list(lines)
    left = pending(blocks, lines, environment, processes=processes, retry_failed=options.retry_failed)
    records = [line for line in lines if isinstance(line, Record)]
    tuned = [cell for block in left for cell in block.cells if isinstance(cell, AccuracyCell)]
    first = dict.fromkeys(one for cell in tuned for one in missing(cell, records))
    cost, accuracy = ([block for block in left if block.exclusive is kind] for kind in (True, False))
    return cost + [Block((cell,)) for cell in first] + accuracy


def _start(suite: Suite, options: RunOptions, protocol: Protocol) -> RunStart:
    at = timing.stamp()
    return RunStart(
        run=run_name(at), suite=suite.name, at=at, fresh=options.fresh, only=options.only, effort=protocol.effort
    )


def _slots(environment: Environment) -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else environment.cores
    return cores if environment.device == "cpu" else min(cores, _SHARED_GPU)


def _count(blocks: list[Block]) -> str:
    cells = len({cell.id for block in blocks for cell in block.cells})
    return f"{cells} cell{'s' * (cells != 1)} in {len(blocks)} block{'s' * (len(blocks) != 1)}"


def _kinds(blocks: list[Block]) -> dict[str, list[Block]]:
    kinds: dict[str, list[Block]] = {}
    for block in blocks:
        cell = block.cells[0]
        kind = "tuning" if cell.kind == "accuracy" and cell.seed == TUNING_SEED else cell.metric
        name = f"{kind} ({cell.scope if cell.kind == 'cost' else cell.task})"
        kinds.setdefault(name, []).append(block)
    return kinds
