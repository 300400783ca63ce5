"""Shaw: a learned vector for each near distance, read by the query."""

from typing import Literal

import torch
from torch import Tensor, nn

from grape_bench.bias import Bias, Rowwise
from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._heads import rows_of
from grape_bench.errors import Unsupported


class Shaw(Encoding):
    """Add the query's product with a vector of the clipped distance to the scores.

        b(i, j) = q_i . a[clip(j - i, -W, W)] / sqrt(D)

    The paper adds such vectors to values as well. They are left out: they change what is read and not where, encodings
    act on scores here, and the paper's own ablation (section 4.3) finds keys alone as good. The table starts at zero.

    Args:
        site: D is its head_dim.
        window: W, tokens.
        heads: which heads share a table; the paper has one for all.

    Raises:
        Unsupported: a window below 1.

    Source: Shaw et al. 2018, arXiv:1803.02155, section 3.
    """

    group = "translations"
    representation = "learned vectors, constant far away"
    laws = ("relative",)
    variants = ("window=3", "heads='own'")
    reach_option = "window"
    out_of_reach = "clamped"
    by_content = True

    rows: Tensor

    def __init__(self, site: Site, *, window: int = 16, heads: Literal["own", "shared", "half"] = "shared"):
        super().__init__()
        if window < 1:
            raise Unsupported(f"shaw: the window must be at least 1 token, got {window}")
        self.window = window
        self.register_buffer("rows", rows_of(site.heads, heads), persistent=False)
        self.table = nn.Parameter(torch.zeros(int(self.rows.max()) + 1, 2 * window + 1, site.head_dim))

    def bias(self, q: Tensor, features: Tensor | None, at: At) -> Bias:
        wide, W = torch.promote_types(q.dtype, torch.float32), self.window

        def values(rows: slice, scores: Tensor | None, q: Tensor, table: Tensor) -> Tensor:
            known = q[..., rows, :] @ table.transpose(-1, -2) * q.shape[-1] ** -0.5  # (B, H, rows, 2W + 1)
            ahead = at.k_pos[..., None, :] - at.q_pos[..., rows, None]  # (rows, S) or (B, rows, S)
            index = ahead.round().long().clamp(-W, W) + W
            index = index.reshape(-1, 1, *index.shape[-2:])
            read: Tensor = known.gather(-1, index.expand(*known.shape[:-1], index.shape[-1]))
            return read

        return Rowwise(values, [q.to(wide), self.table[self.rows].to(wide)])


PLUGIN = Shaw
