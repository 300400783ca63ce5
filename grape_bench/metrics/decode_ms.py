"""Time of decoding one token."""

import torch

from grape_bench.cell import CostCell
from grape_bench.metrics import Metric, Operation
from grape_bench.operation import AttentionOperation


class DecodeMs(Metric):
    """Milliseconds of one query against a cache: encode the new token, write it to the cache, attend.

    The length is that of the cache with the new token in it.
    """

    version = 2  # tables of positions are shared by calls, and one heap holds every block
    scopes = ("attention",)
    decodes = True
    backward = False

    def prepare(self, cell: CostCell, device: str) -> Operation:
        with torch.no_grad():
            decoder = AttentionOperation.of(cell, device).decoder()
        return torch.no_grad()(decoder.step)


PLUGIN = DecodeMs
