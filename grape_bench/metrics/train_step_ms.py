"""Time of one training step of the model."""

from grape_bench.cell import CostCell
from grape_bench.metrics import Metric, Operation
from grape_bench.operation import TrainStep


class TrainStepMs(Metric):
    """Milliseconds of forward, backward and optimizer: the article's relative training time is its ratio."""

    version = 2  # tables of positions are shared by calls, and one heap holds every block
    scopes = ("model",)

    def prepare(self, cell: CostCell, device: str) -> Operation:
        return TrainStep(cell, device).step


PLUGIN = TrainStepMs
