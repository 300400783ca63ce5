"""Peak memory of one forward and backward pass, or of one training step."""

from grape_bench.cell import CostCell
from grape_bench.metrics import Metric, Operation
from grape_bench.metrics._attention import forward_backward
from grape_bench.operation import TrainStep


class PeakMib(Metric):
    """MiB (2^20 bytes) over what was allocated before: inputs, weights and optimizer state are not counted.

    Scope `attention`: forward and backward of the operation. Scope `model`: a training step.
    """

    version = 2  # tables of positions are there before the call
    kind = "memory"
    unit = "MiB"

    def prepare(self, cell: CostCell, device: str) -> Operation:
        return TrainStep(cell, device).step if cell.scope == "model" else forward_backward(cell, device)


PLUGIN = PeakMib
