"""Time of one forward pass of attention, without gradients."""

import torch

from grape_bench.cell import CostCell
from grape_bench.metrics import Metric, Operation
from grape_bench.operation import AttentionOperation


class ForwardMs(Metric):
    """Milliseconds of encoding and attention together, forward only."""

    version = 2  # tables of positions are shared by calls, and one heap holds every block
    scopes = ("attention",)
    backward = False

    def prepare(self, cell: CostCell, device: str) -> Operation:
        operation = AttentionOperation.of(cell, device)
        at = operation.at()

        @torch.no_grad()
        def run() -> object:
            return operation.forward(at)

        return run


PLUGIN = ForwardMs
