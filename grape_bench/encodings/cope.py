"""CoPE: contextual positions, which count what the query chooses to count."""

from typing import Literal

import torch
from torch import Tensor, nn

from grape_bench.bias import Bias, Rowwise
from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._heads import rows_of
from grape_bench.encodings._places import ahead
from grape_bench.errors import Unsupported


class Cope(Encoding):
    """Let each query open a gate on every key up to itself; the distance of a key is the number of open gates.

        g_ij = sigmoid(q_i . k_j / sqrt(D)),   p_ij = min(sum_{l=j..i} g_il, P - 1),   b(i, j) = q_i . e[p_ij]

    Between whole distances e is interpolated; it starts at zero. Gates on keys ahead stay shut, or they would let the
    future through. Where tokens stand plays no part, only their order.

    Args:
        site: its direction must be causal.
        positions: P, vectors e, the last of which is for all further keys.
        heads: which heads share a table; the paper has one for all.

    Raises:
        Unsupported: fewer than 2 positions.

    Source: Golovneva et al. 2024, arXiv:2405.18719, section 4; scores are scaled as in its listing.
    """

    domain = "causal"
    group = "none"
    representation = "look-up by gated counts"
    laws = ("relative",)
    variants = ("heads='own'", "positions=4")
    by_content = True

    rows: Tensor

    def __init__(self, site: Site, *, positions: int = 64, heads: Literal["own", "shared", "half"] = "shared"):
        super().__init__()
        if positions < 2:
            raise Unsupported(f"cope: at least 2 positions are needed to interpolate between, got {positions}")
        self.register_buffer("rows", rows_of(site.heads, heads), persistent=False)
        self.table = nn.Parameter(torch.zeros(int(self.rows.max()) + 1, positions, site.head_dim))

    def bias(self, q: Tensor, features: Tensor | None, at: At) -> Bias:
        wide = torch.promote_types(q.dtype, torch.float32)
        table = self.table[self.rows].to(wide)  # (H, P, D)
        return Rowwise(self._values, [q.to(wide), table], reads_scores=True)

    def _values(self, rows: slice, scores: Tensor | None, q: Tensor, table: Tensor) -> Tensor:
        assert scores is not None
        coming = ahead(rows, q.shape[-2], scores.shape[-1], q.device)
        gates = scores.to(q.dtype).sigmoid().masked_fill(coming, 0.0)
        far = gates.flip(-1).cumsum(-1).flip(-1).clamp(max=table.shape[1] - 1)
        known = q[..., rows, :] @ table.transpose(-1, -2)  # (B, H, rows, P)
        below, above = (known.gather(-1, whole.long()) for whole in (far.floor(), far.ceil()))
        return torch.lerp(below, above, far - far.floor())


PLUGIN = Cope
