"""Thin GRAPE-M: a learned generator within a few learned directions."""

import torch
from torch import Tensor, nn

from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._skew import planes, rotary_entries, skew, turn_in
from grape_bench.errors import Unsupported


class GrapeMThin(Encoding):
    """Turn within r learned directions, by a generator in which planes need not commute, and leave the rest.

        G(t) = exp(t E L E^T) = 1 - E E^T + E exp(t L) E^T,   E^T E = 1,   L^T = -L

    Coupled planes have one generator L, so G is a one-parameter group; a product of exponentials, plane by plane,
    would not be. E is the orthogonal factor of a free matrix. It starts as RoPE in the first r channels.

    Args:
        site: its key heads share E (D, r), and each has its L (r, r).
        rank: r, directions; an even number up to the head's channels.
        base: of the spectrum at the start, no unit.

    Raises:
        Unsupported: such a rank does not fit the head.

    Source: Zhang et al. 2025, arXiv:2512.07805, section 3; the form of E and the start are ours.
    """

    group = "translations"
    representation = "SO(r) of one learned generator"
    laws = ("relative", "identity", "inverse", "homomorphism", "isometric")
    variants = ("rank=2",)

    def __init__(self, site: Site, *, rank: int = 4, base: float = 10_000.0):
        super().__init__()
        if not 2 <= rank <= site.head_dim or rank % 2:
            raise Unsupported(f"grape_m_thin: the rank is even and 2 .. head_dim, {site.head_dim} here, got {rank}")
        self.rank = rank
        self.directions = nn.Parameter(torch.eye(site.head_dim, rank))
        self.entries = nn.Parameter(rotary_entries(rank, base).repeat(site.kv_heads, 1))  # L below its diagonal

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        wide = torch.promote_types(q.dtype, torch.float32)
        orthogonal, upper = torch.linalg.qr(self.directions.to(wide))
        e = orthogonal * upper.diagonal().sign()  # the factor that moves without jumps
        inner, frequency = planes(skew(self.entries.to(wide), self.rank))
        return turn_in(q, e @ inner, frequency, at.q_pos), turn_in(k, e @ inner, frequency, at.k_pos)


PLUGIN = GrapeMThin
