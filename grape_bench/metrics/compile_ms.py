"""What torch.compile takes, once."""

from grape_bench.cell import CostCell
from grape_bench.metrics import Metric, Operation
from grape_bench.metrics._attention import forward_backward
from grape_bench.operation import TrainStep


class CompileMs(Metric):
    """Milliseconds by the wall clock of a first call less a later one, with no compiler cache; a single value.

    Scope `attention`: forward and backward of the operation. Scope `model`: a training step.
    """

    kind = "compile"

    def prepare(self, cell: CostCell, device: str) -> Operation:
        compiled = cell.model_copy(update={"compiled": True})
        return TrainStep(compiled, device).step if cell.scope == "model" else forward_backward(compiled, device)


PLUGIN = CompileMs
