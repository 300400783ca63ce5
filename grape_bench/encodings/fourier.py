"""Fourier: a learned sum of waves of the distance, a continuous kernel."""

from typing import Literal

import torch
from torch import Tensor, nn

from grape_bench.bias import Bias, LowRank
from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._heads import rows_of
from grape_bench.errors import Unsupported


class Fourier(Encoding):
    """Add a learned, band-limited function of the distance to the scores.

        b(i, j) = sum_m a_hm cos(w_m (i - j)) + c_hm sin(w_m (i - j)),   w_m = 2 pi / period_m

    Periods are log-spaced from 4 tokens to 16 training lengths; a and c start at zero. Every distance has a value, so
    nothing is clamped. By the angle sum it is a matrix coefficient of M planes: a lift of 2M channels and no matrix.

    Args:
        site: its train_length sets the longest period.
        periods: number M of waves.
        heads: which heads share a row of amplitudes.

    Raises:
        Unsupported: fewer than 1 period.

    Source: ours; the continuous kernel that the article on GRAPE asks for.
    """

    group = "translations"
    representation = "SO(2) blocks, as a bias"
    laws = ("relative",)
    variants = ("periods=5", "heads='shared'")
    shared = True
    table_lr = True

    rows: Tensor

    def __init__(self, site: Site, *, periods: int = 16, heads: Literal["own", "shared", "half"] = "own"):
        super().__init__()
        if periods < 1:
            raise Unsupported(f"fourier: at least 1 period is needed, got {periods}")
        self.shortest, self.longest, self.periods = 4.0, 16.0 * site.train_length, periods
        self.register_buffer("rows", rows_of(site.heads, heads), persistent=False)
        self.amplitude = nn.Parameter(torch.zeros(int(self.rows.max()) + 1, 2, periods))  # of cosines, of sines

    def bias(self, q: Tensor, features: Tensor | None, at: At) -> Bias:
        wide = torch.promote_types(q.dtype, torch.float32)
        step = torch.linspace(0, 1, self.periods, device=q.device, dtype=wide)
        w = 2 * torch.pi / (self.shortest * (self.longest / self.shortest) ** step)
        i, j = (position * w for position in at.centred(wide))  # (1 or B, 1, T, M), (1 or B, 1, S, M)
        a, c = self.amplitude[self.rows].to(wide)[:, :, None].unbind(1)  # (H, 1, M)
        u = torch.cat((a * i.cos() + c * i.sin(), a * i.sin() - c * i.cos()), dim=-1)
        return LowRank(u, torch.cat((j.cos(), j.sin()), dim=-1), bounded=True)


PLUGIN = Fourier
