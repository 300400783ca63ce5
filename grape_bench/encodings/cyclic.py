"""Cyclic: a learned bias that repeats with the distance."""

from typing import Literal

import torch
from torch import Tensor, nn

from grape_bench.bias import Bias, Toeplitz
from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._heads import rows_of
from grape_bench.errors import Unsupported


class Cyclic(Encoding):
    """Add E[h, (i - j) mod n] to the scores: a function on the cyclic group of n distances.

    Every distance has a trained number, and distances n apart have the same one. Real distances are rounded. The table
    starts at zero.

    Args:
        site: its train_length is the default period.
        period: n, tokens.
        heads: which heads share a row of the table.

    Raises:
        Unsupported: a period below 2.

    Source: ours; the functions on Z / n, of which the waves of period n / m are a basis.
    """

    group = "cyclic"
    representation = "regular, as a learned kernel"
    laws = ("relative",)
    variants = ("period=7", "heads='shared'")
    shared = True
    table_lr = True

    rows: Tensor

    def __init__(self, site: Site, *, period: int | None = None, heads: Literal["own", "shared", "half"] = "own"):
        super().__init__()
        self.period = site.train_length if period is None else period
        if self.period < 2:
            raise Unsupported(f"cyclic: the period must be at least 2 tokens, got {self.period}")
        self.register_buffer("rows", rows_of(site.heads, heads), persistent=False)
        self.table = nn.Parameter(torch.zeros(int(self.rows.max()) + 1, self.period))

    def bias(self, q: Tensor, features: Tensor | None, at: At) -> Bias:
        table = self.table[self.rows].to(torch.promote_types(q.dtype, torch.float32))
        return Toeplitz(self._values, [table], at.q_pos, at.k_pos, uniform=at.uniform)

    def _values(self, distance: Tensor, table: Tensor) -> Tensor:
        return table[:, distance.round().long() % self.period]


PLUGIN = Cyclic
