"""GRAPE-M in a learned basis: RoPE along axes of its own."""

import torch
from torch import Tensor, nn

from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._skew import skew, turn_in
from grape_bench.encodings._speeds import speeds, stored_spectrum


class GrapeMBasis(Encoding):
    """Turn planes that are learned, each at a learned speed, instead of planes of neighbouring channels.

        G(t) = E diag_m R(t w_m) E^T,   E = exp(S),   S^T = -S

    Planes stay orthogonal, so they commute and G is still a one-parameter group. S starts at zero and w as RoPE's
    spectrum, so it starts as RoPE.

    Args:
        site: each of its key heads has a basis and a spectrum; head_dim D must be even.
        base: of the spectrum at the start, no unit.

    Raises:
        Unsupported: D is odd.

    Source: Zhang et al. 2025, arXiv:2512.07805, section 3; the form of E and the start are ours.
    """

    group = "translations"
    representation = "SO(2) blocks in a learned basis"
    laws = ("relative", "identity", "inverse", "homomorphism", "isometric")

    def __init__(self, site: Site, *, base: float = 10_000.0):
        super().__init__()
        self.size = site.head_dim
        below = self.size * (self.size - 1) // 2  # the diagonal of S
        self.entries = nn.Parameter(torch.zeros(site.kv_heads, below))
        self.stored = nn.Parameter(stored_spectrum(self.size, base).repeat(site.kv_heads, 1))

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        wide = torch.promote_types(q.dtype, torch.float32)
        basis = torch.linalg.matrix_exp(skew(self.entries.to(wide), self.size))
        frequency = speeds(self.stored.to(wide))
        return turn_in(q, basis, frequency, at.q_pos), turn_in(k, basis, frequency, at.k_pos)


PLUGIN = GrapeMBasis
