"""How long a block of a suite may take."""

from grape_bench.cell import AccuracyCell, Block, CostCell
from grape_bench.suite_entry import AccuracyGrid, CostGrid
from grape_bench.suite_format import Suite


def minutes(suite: Suite, block: Block) -> float:
    """Minutes after which a block is stopped: the most that an entry with its setting grants."""
    cell = block.cells[0]
    if isinstance(cell, AccuracyCell):
        granted = [one.minutes for one in suite.accuracy if _trains(one, cell)]
    else:
        granted = [one.minutes for one in suite.cost if _measures(one, cell)]
    return max((one or suite.block_minutes for one in granted), default=suite.block_minutes)


def _trains(grid: AccuracyGrid, cell: AccuracyCell) -> bool:
    """Tuning's trainings, which have a learning rate and a seed of their own, included."""
    return (grid.task, grid.train_length, grid.backend) == (cell.task, cell.train_length, cell.backend)


def _measures(grid: CostGrid, cell: CostCell) -> bool:
    sizes = cell.length in grid.lengths and cell.heads in grid.heads and cell.head_dim in grid.head_dim
    ways = cell.batch in grid.batch and cell.dtype in grid.dtypes and cell.backend in grid.backends
    return grid.scope == cell.scope and sizes and ways
