"""Time of one forward and backward pass of attention."""

from grape_bench.cell import CostCell
from grape_bench.metrics import Metric, Operation
from grape_bench.metrics._attention import forward_backward


class ForwardBackwardMs(Metric):
    """Milliseconds of encoding and attention, with gradients of q, k, v and the encoding's parameters."""

    version = 2  # tables of positions are shared by calls, and one heap holds every block
    scopes = ("attention",)

    def prepare(self, cell: CostCell, device: str) -> Operation:
        return forward_backward(cell, device)


PLUGIN = ForwardBackwardMs
