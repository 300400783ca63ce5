"""How long an entry of a suite takes: from its records, or from a rough model of its arithmetic."""

import math
from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from grape_bench.cell import AccuracyCell, Block, CostCell
from grape_bench.flops import attention_flops
from grape_bench.lint.subject import AnyEntry, Subject
from grape_bench.suite import group
from grape_bench.suite_entry import CostGrid

_FLOPS = 20e9  # a second and core: the trainings of `source-table-cpu` had 23 to 26 of these, tests included
_PROCESSES = 5  # in which a time cell is measured where the suite does not say
_CALLS = {"quick": 8, "full": 45}  # of one operation in such a process, warm-up included
_START_S = 0.5  # of a process, with its share of loading torch


class Price(NamedTuple):
    """What an entry takes.

    Args:
        blocks: each as often as it is measured, and those that tune included.
        source: what the hours rest on, in words.
    """

    hours: float
    blocks: int
    source: str

    def __str__(self) -> str:
        blocks = f"{self.blocks} block{'s' * (self.blocks > 1)}"
        return f"this entry takes some {self.hours / 24:,.1f} days, {blocks}, by {self.source}"


def price(subject: Subject, entry: AnyEntry) -> Price:
    """The time of an entry on this machine."""
    suite, grid = subject.suite, entry.grid
    blocks = group(subject.cells(entry), suite.baseline, suite.vary)
    if isinstance(grid, CostGrid):
        times = fmean(_processes(subject, block) for block in blocks)
        cores = 1
    else:
        times = 1 + (len(grid.tune.lr) if grid.tune else 0) / len(suite.seeds)
        cores = subject.machine.cores
    if known := _recorded(subject, blocks):
        seconds, source = fmean(known), f"the mean of {len(known)} on record"
    else:
        rough = (_START_S + _operations(subject, block) / _FLOPS for block in blocks)
        seconds, source = fmean(rough), f"a rough model, {_FLOPS / 1e9:g} GFLOP/s a core"
    count = len(blocks) * times
    source += f", on {cores} core{'s' * (cores > 1)}"
    return Price(count * seconds / cores / 3600, round(count), source)


def _processes(subject: Subject, block: Block) -> int:
    timed = subject.plugins["metrics"][block.cells[0].metric].facts["kind"] == "time"
    return (subject.suite.processes or _PROCESSES) if timed else 1


def _recorded(subject: Subject, blocks: Sequence[Block]) -> list[float]:
    """Seconds of the blocks on record that are like these, each once."""
    if not subject.records:
        return []  # of many blocks a setting each takes long to name
    settings = {block.cells[0].setting for block in blocks}
    like = (one for one in subject.records if one.status == "ok" and one.cell.setting in settings)
    return list({one.block_run: one.seconds for one in like if one.seconds is not None}.values())


def _operations(subject: Subject, block: Block) -> float:
    """Floating-point operations of a block, a multiplication and its addition counted as two."""
    total = 0.0
    for cell in block.cells:
        if isinstance(cell, AccuracyCell):
            total += _training(cell)
        else:
            timed = subject.plugins["metrics"][cell.metric].facts["kind"] == "time"
            total += _call(cell) * (_CALLS[subject.suite.effort] if timed else 1)
    return total


def _call(cell: CostCell) -> float:
    if cell.scope == "model":
        return 3 * cell.batch * _model(cell.heads * cell.head_dim, cell.layers, cell.length)
    both = cell.model_copy(update={"metric": "forward_backward_ms"})  # what a peak is of
    return attention_flops(cell) or attention_flops(both)


def _training(cell: AccuracyCell) -> float:
    """Forward and backward of each step, and forward of each test."""
    recipe = cell.training
    short = min(recipe.shortest or cell.train_length, cell.train_length)
    mean = (cell.train_length - short) / math.log(cell.train_length / short) if short < cell.train_length else short
    steps = 3 * recipe.steps * recipe.batch * _model(cell.model.width, cell.model.layers, mean)
    tests = (recipe.test_examples * _model(cell.model.width, cell.model.layers, one) for one in cell.test_lengths)
    return steps + sum(tests)


def _model(width: int, layers: int, length: float) -> float:
    """One sequence: 12 C^2 weights a layer, scores and sums of values."""
    return layers * length * (24 * width**2 + 4 * width * length)
