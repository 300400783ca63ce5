"""What is left to measure, and how long it may take."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean

from grape_bench.cell import AccuracyCell, Block, CostCell
from grape_bench.environment import Environment
from grape_bench.errors import UserError
from grape_bench.record import Record, RunStart, Status
from grape_bench.registry import Registry
from grape_bench.suite import narrow
from grape_bench.tuning import candidates

Line = Record | RunStart
Key = tuple[str, ...]

_GPU_PROCESSES = 3  # at least, whatever the effort


def done_key(cell: CostCell | AccuracyCell, environment: Environment) -> Key:
    """What makes two attempts the same: the cell and, for cost, what must match to compare two figures."""
    return (cell.id, *environment.compared()) if cell.kind == "cost" else (cell.id,)


def processes_on(environment: Environment, asked: int) -> int:
    """In how many processes a block of times is measured, where so many are asked for: a GPU takes three at least."""
    return asked if environment.device == "cpu" else max(asked, _GPU_PROCESSES)


def standing(blocks: Sequence[Block], lines: Iterable[Line]) -> list[Record]:
    """The records that count: a fresh run voids what is older of the cells that it measures, and of their tuning.

    Args:
        blocks: of the suite; lines: its records, oldest first.
    """
    kept: list[Record] = []
    for line in lines:
        if isinstance(line, Record):
            kept.append(line)
        elif line.fresh:
            void = _ids(blocks, line.only)
            kept = [one for one in kept if one.id not in void]
    return kept


def pending(
    blocks: Sequence[Block], records: Iterable[Record], environment: Environment, *, processes: int, retry_failed: bool
) -> list[Block]:
    """The blocks that are still to be measured, each as often as it is still missing.

    The processes of one block are spread over the whole run, a process of each block at a time: what slows the machine
    for minutes, such as a neighbour's traffic, then differs between processes, and shows in the interval.

    A block with a missing member comes with its baseline, since a ratio needs both; a member that was skipped or
    failed counts as done.

    Args:
        records: those of this machine that count, oldest first.
        processes: how many block runs a time cell needs; see `processes_on`.
        retry_failed: count failed members as missing.
    """
    runs, refused = _tally(records)
    given_up = {key for key, status in refused.items() if not (retry_failed and status == "failed")}
    metrics, left = Registry("metrics"), list[tuple[bool, int, Block]]()
    for block in blocks:
        keys = {cell.id: done_key(cell, environment) for cell in block.cells}
        needed = processes_on(environment, processes) if metrics[block.cells[0].metric].facts["kind"] == "time" else 1
        missing = {cell.id: 0 if keys[cell.id] in given_up else needed - runs[keys[cell.id]] for cell in block.cells}
        base = block.cells[block.baseline].id if block.baseline is not None else None
        for turn in range(max(missing.values())):
            wanted = {id for id, count in missing.items() if count > turn}
            if base is not None and keys[base] not in given_up:
                wanted.add(base)
            left.append((not block.exclusive, turn, block.only(wanted)))
    return [block for _, _, block in sorted(left, key=lambda one: one[:2])]


def earlier_failures(blocks: Sequence[Block], records: Iterable[Record], environment: Environment) -> int:
    """Cells whose last attempt failed, by the records of this machine that count."""
    _, refused = _tally(records)
    keys = (done_key(cell, environment) for block in blocks for cell in block.cells)
    return sum(refused.get(key) == "failed" for key in keys)


def estimate(blocks: Sequence[Block], records: Iterable[Record], slots: int, devices: int = 1) -> tuple[float, int]:
    """Seconds that the blocks may take, from the mean of like blocks on record, and how many are like none of these.

    Args:
        slots: trainings that run side by side; devices: cost blocks that do, each on its own.
    """
    known: dict[Key, list[float]] = defaultdict(list)
    seen = set()
    for record in records:
        if record.seconds is not None and record.block_run not in seen:
            seen.add(record.block_run)
            for key in _likeness(record.cell):
                known[key].append(record.seconds)
    total, unknown = 0.0, 0
    for block in blocks:
        like = next((known[key] for key in _likeness(block.cells[0]) if key in known), None)
        if like is None:
            unknown += 1
        else:
            total += fmean(like) / (devices if block.exclusive else slots)
    return total, unknown


def _likeness(cell: CostCell | AccuracyCell) -> list[Key]:
    """Keys under which durations are kept, the most alike first."""
    if isinstance(cell, AccuracyCell):
        return [(cell.setting, cell.encoding), (cell.setting,), (cell.task.split("(")[0],)]
    return [(cell.setting,), (cell.metric, cell.scope, str(cell.length)), (cell.metric, cell.scope)]


def _tally(records: Iterable[Record]) -> tuple[Counter[Key], dict[Key, Status]]:
    """In how many processes each was measured, and how the last attempt ended at those that were refused."""
    runs: dict[Key, set[str]] = defaultdict(set)
    refused: dict[Key, Status] = {}
    for record in records:
        if record.role == "member":
            key = done_key(record.cell, record.environment)
            if record.status == "ok":
                runs[key].add(record.block_run)
                refused.pop(key, None)
            else:
                refused[key] = record.status
    return Counter({key: len(value) for key, value in runs.items()}), refused


def _ids(blocks: Sequence[Block], only: Sequence[str]) -> set[str]:
    try:
        cells = [cell for block in narrow(blocks, only) for cell in block.cells]
    except UserError:  # a filter of a run of an older suite, which names what this one no longer has
        return set()
    tuning = (one.id for cell in cells if isinstance(cell, AccuracyCell) for one in candidates(cell))
    return {cell.id for cell in cells}.union(tuning)


def words(seconds: float) -> str:
    """A duration as people say it: `40 s`, `3 min`, `2.5 h`."""
    if seconds < 90:
        return f"{math.ceil(seconds)} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
