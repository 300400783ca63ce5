"""Contextual GRAPE-M: rotations by a phase that content drives."""

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._rotary import spectrum, turn


class GrapeMContextual(Encoding):
    """Let each token decide by how much the phase of all later ones moves on.

        x'_t = diag_m R(phi_t w_m) x_t,   phi_t = sum_{s<t} step_s,   step_s = sigmoid(z_s / 16),   z_s = g . x_s + s_0

    Distance in tokens becomes distance in phase, and positions are not read. It starts as RoPE with each step 0.394
    long, g = 0 and log(1 + exp s_0) = 0.001; frequencies w start as RoPE's and are learned.

    Args:
        site: its head_dim D must be even.
        link: `sigmoid` as in the published code; `softplus`, step = log(1 + exp z), as in its documentation, where
            steps start at 0.001.
        heads: `shared` is one phase for all heads, `own` one for each key head.
        base: of the spectrum at the start, no unit.
        layout: plane m holds channels (2m, 2m + 1) when `interleaved`, (m, m + D/2) when `half`.

    Raises:
        Unsupported: D is odd.

    Source: Zhang et al. 2025, arXiv:2512.07805, and its code; it turns by minus the angle, we by plus.
    """

    domain = "causal"
    group = "phases, sums of content's steps"
    representation = "SO(2) blocks of learned speed"
    laws = ("relative", "identity", "isometric")
    variants = ("link='softplus'", "heads='own'", "layout='half'")
    features = 1

    def __init__(
        self,
        site: Site,
        *,
        link: Literal["sigmoid", "softplus"] = "sigmoid",
        heads: Literal["shared", "own"] = "shared",
        base: float = 10_000.0,
        layout: Literal["interleaved", "half"] = "interleaved",
    ):
        super().__init__()
        self.kv_heads, self.link, self.layout = site.kv_heads, link, layout
        rows = 1 if heads == "shared" else site.kv_heads
        self.gate = nn.Parameter(torch.zeros(rows, site.width))
        self.start = nn.Parameter(torch.full((rows,), math.log(math.expm1(1e-3))))
        self.log_frequency = nn.Parameter(torch.tensor(spectrum(site.head_dim, base)).log())

    def state(self, k: Tensor, at: At, carry: Tensor | None) -> tuple[Tensor, Tensor]:
        wide = torch.promote_types(at.x.dtype, torch.float32)
        z = F.linear(at.x.to(wide), self.gate.to(wide), self.start.to(wide))  # (B, S, 1 or kv_heads)
        step = F.softplus(z) if self.link == "softplus" else (z / 16).sigmoid()
        before = torch.zeros_like(step[:, :1]) if carry is None else carry
        phase = torch.cat((before, step), dim=1).cumsum(dim=1)
        here = phase[:, :-1].transpose(1, 2)[..., None]  # a token's step moves those after it
        return here.expand(-1, self.kv_heads, -1, -1), phase[:, -1:]

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        assert features is not None
        angle = features * self.log_frequency.to(features.dtype).exp()  # (B, kv_heads, S, D/2)
        cis = torch.complex(angle.cos(), angle.sin())
        return turn(q, cis[..., -q.shape[-2] :, :], self.layout), turn(k, cis, self.layout)


PLUGIN = GrapeMContextual
