"""Sandwich: what sinusoidal positions say to each other, as a bias."""

import torch
from torch import Tensor

from grape_bench.bias import Bias, LowRank
from grape_bench.encodings import At, Encoding, Site
from grape_bench.errors import Unsupported


class Sandwich(Encoding):
    """Add the inner product of two sinusoidal vectors, compressed head by head, to the scores.

        b(i, j) = 1 / r_h  sum_m cos(w_m (i - j)),   w_m = 10000^(-2m/n),  m = 0 .. n/2 - 1,   r_h = 8h/H,  h = 1 .. H

    Of the four products of tokens and positions it keeps the two that compare like with like. Nothing is learned; the
    sum falls with the distance as a logarithm does, and it is a matrix coefficient of n/2 planes: a lift of n channels.

    Args:
        site: the ratios r_h are those of its heads.
        width: n, channels of the sinusoidal vectors; must be even.

    Raises:
        Unsupported: an odd width, or none.

    Source: Chi et al. 2023, arXiv:2212.10356.
    """

    group = "translations"
    representation = "SO(2) blocks, as a bias"
    laws = ("relative", "reflection")
    variants = ("width=8",)

    def __init__(self, site: Site, *, width: int = 128):
        super().__init__()
        if width < 2 or width % 2:
            raise Unsupported(f"sandwich: width must be even and at least 2, got {width}")
        self.heads, self.width = site.heads, width

    def bias(self, q: Tensor, features: Tensor | None, at: At) -> Bias:
        wide = torch.promote_types(q.dtype, torch.float32)
        waves = at.once(("sandwich", self.width, self.heads, wide), lambda: self._waves(at, wide))
        return LowRank(*waves, bounded=True)

    def _waves(self, at: At, wide: torch.dtype) -> tuple[Tensor, Tensor]:
        w = 10_000.0 ** (-torch.arange(0, self.width, 2, device=at.q_pos.device, dtype=wide) / self.width)
        u, v = (torch.cat(((x * w).cos(), (x * w).sin()), dim=-1) for x in at.centred(wide))
        ratio = 8 * torch.arange(1, self.heads + 1, device=u.device, dtype=wide) / self.heads
        return u / ratio[:, None, None], v


PLUGIN = Sandwich
