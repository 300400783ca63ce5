"""A run of a suite: what is missing is measured, and recorded."""

import math
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from grape_bench import timing
from grape_bench.agenda import Agenda, agenda
from grape_bench.cell import AccuracyCell, Block
from grape_bench.environment import resolve
from grape_bench.errors import UserError
from grape_bench.executors import Executor
from grape_bench.forecast import forecast, remainder
from grape_bench.ledger import Ledger
from grape_bench.loop import Loop
from grape_bench.origin import named
from grape_bench.placing import Place
from grape_bench.progress import Progress
from grape_bench.record import RunStart, run_name
from grape_bench.registry import Registry
from grape_bench.store import Store
from grape_bench.suite import Suite, expand, group, narrow
from grape_bench.suite_filter import unexpected
from grape_bench.tuning import choose
from grape_bench.worker import Protocol, measure


@dataclass(frozen=True)
class RunOptions:
    """What the command line adds to a suite.

    Args:
        results: folder of the records; device: `auto`, `cpu` or `cuda`.
        fresh: measure again what is on record; only: filters `key=value`; effort: None for the suite's own.
        retry_failed: try failed cells once more; executor: name of a plug-in; address: of its cluster.
        deadline: by `timing.seconds()`; what is not done then is left to the next run.
        memory_gib: what one worker may hold, of the GPU's memory where it computes there.
    """

    results: Path = Path("results")
    device: str = "auto"
    fresh: bool = False
    only: tuple[str, ...] = ()
    effort: str | None = None
    retry_failed: bool = False
    executor: str = "local"
    address: str | None = None
    deadline: float = math.inf
    memory_gib: float | None = None


@dataclass(frozen=True)
class Outcome:
    """What a run came to, in cells.

    Args:
        known: cells that had their records before; failed: of this run, and of earlier ones that were not tried again.
        unexpected: what was skipped in this run beside the skips that the suite expects, if it lists any.
        stopped: why it stopped early, to be continued by the same command; left: what that will do, in words.
    """

    measured: int = 0
    known: int = 0
    skipped: int = 0
    failed: int = 0
    unexpected: tuple[str, ...] = ()
    stopped: str = ""
    left: str = ""


def run(suite: Suite, options: RunOptions) -> Outcome:
    """Measure what a suite asks for and its records lack.

    Raises:
        UserError: a filter names nothing, the records cannot be written, or another run writes to them.
    """
    blocks, protocol = _blocks(suite, options), _protocol(suite, options)
    with ExitStack() as held, closing(_executor(options)) as executor:  # no worker outlives the locks
        places, store = _places(executor, suite, protocol), Store(options.results)
        machines = sorted({place.environment.machine for place in places})
        writers = {one: held.enter_context(store.writing(one, suite.name)) for one in machines}
        found = _agenda(suite, options, blocks, places)
        if not found.jobs:
            return Outcome(known=found.known, failed=found.failed)
        start = _start(suite, options, protocol, after=max((one.at for one in found.records), default=""))
        for writer in writers.values():
            writer.append([start])
        ledger = Ledger(start, writers, list(found.standing))
        with Progress(suite.name, found.blocks, found.records, places) as progress:
            loop = Loop(suite, ledger, executor, places, protocol, progress, options.deadline)
            stopped = loop.run(found.jobs)
        ok, skipped, failed = (len(ledger.cells[status]) for status in ("ok", "skipped", "failed"))
        left = remainder(loop.left, ledger.records, places) if stopped else ""
        surprises = _unexpected(suite, found.blocks, ledger)
        return Outcome(ok, found.known, skipped, failed + found.failed, surprises, stopped, left)


def plan(suite: Suite, options: RunOptions) -> str:
    """What a run would do: numbers of cells and blocks by kind, and an estimate of time once there are records."""
    blocks = _blocks(suite, options)
    with closing(_executor(options)) as executor:
        places = _places(executor, suite, _protocol(suite, options))
    found = _agenda(suite, options, blocks, places)
    return f"{suite.name}: {forecast(blocks, found.blocks, found.records, places)}"


def run_cell(suite: Suite, options: RunOptions, cell_id: str) -> str:
    """Measure one cell in this process, for a debugger; nothing is recorded.

    Raises:
        UserError: no cell of the suite has an id that starts so, or several have; or the device is not here.
    """
    cells = [cell for cell in expand(suite) if cell.id.startswith(cell_id)]
    if len(cells) != 1:
        found = f"{len(cells)} cells have ids that start with it" if cells else "no cell has it"
        raise UserError(f"--cell {cell_id}: {found}; `grape-bench records {suite.name}` and reports name ids")
    (cell,), protocol = cells, _protocol(suite, options)
    with _said_to_the_user():
        resolve(options.device)
    if isinstance(cell, AccuracyCell) and cell.tune:
        protocol = replace(protocol, lr=choose(cell, Store(options.results).records(suite.name)))
    (result,) = measure(Block((cell,)), protocol, lambda note: None).results
    return result.reading.model_dump_json(indent=2) if result.reading else f"{result.status}: {result.message}"


def _unexpected(suite: Suite, blocks: Iterable[Block], ledger: Ledger) -> tuple[str, ...]:
    if not suite.skips:
        return ()
    skipped = {cell.id: cell for block in blocks for cell in block.cells if cell.id in ledger.cells["skipped"]}
    surprises = unexpected(skipped.values(), suite.skips)
    return tuple(dict.fromkeys(f"{one.encoding}: {one.metric}" for one in surprises))


def _blocks(suite: Suite, options: RunOptions) -> list[Block]:
    blocks = group(expand(suite), suite.baseline, suite.vary)
    return narrow(blocks, options.only) if options.only else blocks


def _protocol(suite: Suite, options: RunOptions) -> Protocol:
    effort = options.effort or suite.effort
    return Protocol(
        effort=effort,
        device=options.device,
        threads=suite.threads,
        processes=suite.processes or timing.EFFORTS[effort].processes,
        plugins=named(),
        memory_gib=options.memory_gib,
    )


def _executor(options: RunOptions) -> Executor:
    plugin = Registry("executors")[options.executor]
    needs = str(plugin.facts["needs"])
    if needs and find_spec(needs) is None:
        raise UserError(f"--executor {plugin.name} needs {needs}, which is missing; pip install 'grape-bench[{needs}]'")
    if options.address and "address" not in plugin.options:
        raise UserError(f"--address {options.address}: executor {options.executor} has no cluster; add --executor ray")
    executor: Executor = plugin.load()(**{"address": options.address} if options.address else {})
    return executor


def _places(executor: Executor, suite: Suite, protocol: Protocol) -> tuple[Place, ...]:
    with _said_to_the_user():
        return executor.places(protocol, suite.resources)


@contextmanager
def _said_to_the_user() -> Iterator[None]:
    """A device that is not here is the input's fault."""
    try:
        yield
    except RuntimeError as error:
        raise UserError(str(error)) from None


def _agenda(suite: Suite, options: RunOptions, blocks: list[Block], places: tuple[Place, ...]) -> Agenda:
    store, processes = Store(options.results), _protocol(suite, options).processes
    machines = dict.fromkeys(place.environment.machine for place in places)
    lines = {one: list(store.lines(suite.name, one)) for one in machines}
    how = {"fresh": options.fresh, "retry_failed": options.retry_failed}
    return agenda(blocks, lines, places, processes=processes, **how)


def _start(suite: Suite, options: RunOptions, protocol: Protocol, after: str) -> RunStart:
    at = timing.stamp(after)
    return RunStart(
        run=run_name(at), suite=suite.name, at=at, fresh=options.fresh, only=options.only, effort=protocol.effort
    )
