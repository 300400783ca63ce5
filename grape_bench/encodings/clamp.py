"""Clamp: a learned bias for each distance, all far distances being one."""

from typing import Literal

import torch
from torch import Tensor, nn

from grape_bench.bias import Bias, Toeplitz
from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._heads import rows_of
from grape_bench.errors import Unsupported


class Clamp(Encoding):
    """Add E[h, clip(i - j, -W, W)] to the scores.

    Beyond the window W every distance is the same number. The table starts at zero.

    Args:
        site: its train_length is the default window.
        window: W, tokens.
        heads: which heads share a row of the table.

    Raises:
        Unsupported: a window below 1.

    Source: the learned bias of Shaw et al. 2018, arXiv:1803.02155, section 3.2, as a number a head.
    """

    group = "translations"
    representation = "learned kernel, constant far away"
    laws = ("relative",)
    variants = ("window=3", "heads='shared'")
    shared = True
    table_lr = True
    reach_option = "window"
    out_of_reach = "clamped"

    rows: Tensor

    def __init__(self, site: Site, *, window: int | None = None, heads: Literal["own", "shared", "half"] = "own"):
        super().__init__()
        if window is not None and window < 1:
            raise Unsupported(f"clamp: the window must be at least 1 token, got {window}")
        self.window = site.train_length if window is None else window
        self.register_buffer("rows", rows_of(site.heads, heads), persistent=False)
        self.table = nn.Parameter(torch.zeros(int(self.rows.max()) + 1, 2 * self.window + 1))

    def bias(self, q: Tensor, features: Tensor | None, at: At) -> Bias:
        table = self.table[self.rows].to(torch.promote_types(q.dtype, torch.float32))
        return Toeplitz(self._values, [table], at.q_pos, at.k_pos, uniform=at.uniform)

    def _values(self, distance: Tensor, table: Tensor) -> Tensor:
        return table[:, distance.round().long().clamp(-self.window, self.window) + self.window]


PLUGIN = Clamp
