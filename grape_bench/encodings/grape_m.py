"""GRAPE-M: RoPE whose frequencies are learned."""

from typing import Literal

import torch
from torch import Tensor, nn

from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._rotary import table, turn
from grape_bench.encodings._speeds import speeds, stored_spectrum


class GrapeM(Encoding):
    """Turn each plane of channels at a speed of its own, which is learned.

        x'_t = diag_m R(t w_m) x_t,   w_m = exp(r_m / 16),   r_m = 16 log(base^(-2m/D)) at the start

    It starts as RoPE and stays a one-parameter group: the spectrum alone is learned. A step of the optimizer moves
    log w sixteen times less than it moves r.

    Args:
        site: its head_dim D must be even.
        base: of the spectrum at the start, no unit.
        heads: `shared` is one spectrum for all heads, `own` one for each key head.
        layout: plane m holds channels (2m, 2m + 1) when `interleaved`, (m, m + D/2) when `half`.

    Raises:
        Unsupported: D is odd.

    Source: Zhang et al. 2025, arXiv:2512.07805, section 3, and its code for r; it turns by minus the angle, we by plus.
    """

    group = "translations"
    representation = "SO(2) blocks of learned speed"
    laws = ("relative", "identity", "inverse", "homomorphism", "isometric")
    variants = ("heads='own'", "layout='half'")

    def __init__(
        self,
        site: Site,
        *,
        base: float = 10_000.0,
        heads: Literal["shared", "own"] = "shared",
        layout: Literal["interleaved", "half"] = "interleaved",
    ):
        super().__init__()
        self.layout = layout
        rows = 1 if heads == "shared" else site.kv_heads
        self.stored = nn.Parameter(stored_spectrum(site.head_dim, base).repeat(rows, 1))  # r

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        frequency = speeds(self.stored.to(torch.promote_types(q.dtype, torch.float32)))
        keys = table(at.k_pos, frequency)
        queries = keys if at.q_pos is at.k_pos else table(at.q_pos, frequency)
        return turn(q, queries, self.layout), turn(k, keys, self.layout)


PLUGIN = GrapeM
