"""Log: a learned multiple of the logarithm of the distance, a continuous kernel."""

from typing import Literal

import torch
from torch import Tensor, nn

from grape_bench.bias import Bias, Toeplitz
from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._heads import rows_of


class Log(Encoding):
    """Add a logarithm of the distance, with a weight for each side, to the scores.

        b(i, j) = a_h log(1 + |i - j|) + c_h sign(i - j) log(1 + |i - j|)

    Softmax makes it a power law of the distance, (1 + |d|)^(a + c) for past keys and (1 + |d|)^(a - c) for coming ones.
    Weights start at zero, and may grow to favour far keys as well as near ones.

    Args:
        site: its heads have two weights each.
        heads: which heads share their weights.

    Source: ours; the continuous kernel that the article on GRAPE asks for beside Fourier's.
    """

    group = "translations"
    representation = "logarithmic kernel"
    laws = ("relative",)
    variants = ("heads='shared'",)
    shared = True
    table_lr = True

    rows: Tensor

    def __init__(self, site: Site, *, heads: Literal["own", "shared", "half"] = "own"):
        super().__init__()
        self.register_buffer("rows", rows_of(site.heads, heads), persistent=False)
        self.weights = nn.Parameter(torch.zeros(int(self.rows.max()) + 1, 2))  # a, c

    def bias(self, q: Tensor, features: Tensor | None, at: At) -> Bias:
        weights = self.weights[self.rows].to(torch.promote_types(q.dtype, torch.float32))
        return Toeplitz(self._values, [weights], at.q_pos, at.k_pos, uniform=at.uniform)

    def _values(self, distance: Tensor, weights: Tensor) -> Tensor:
        a, c = (one.reshape(-1, *[1] * distance.dim()) for one in weights.unbind(1))
        return (a + c * distance.sign()) * distance.abs().to(weights.dtype).log1p()


PLUGIN = Log
