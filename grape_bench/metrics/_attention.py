"""Forward and backward of the attention operation, whose time and whose memory are two metrics."""

import torch

from grape_bench.cell import CostCell
from grape_bench.metrics import Operation
from grape_bench.operation import AttentionOperation


def forward_backward(cell: CostCell, device: str) -> Operation:
    """The operation that takes gradients of q, k, v and the encoding's parameters.

    Raises:
        Unsupported: the cell cannot be done.
    """
    operation = AttentionOperation.of(cell, device)
    at, leaves = operation.at(), operation.leaves()
    direction = torch.randn_like(operation.qkv[0])

    def run() -> object:
        return torch.autograd.grad(operation.forward(at), leaves, direction, allow_unused=True)

    return run
