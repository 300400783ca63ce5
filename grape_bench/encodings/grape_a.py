"""GRAPE-A: ALiBi whose slopes content gates."""

import math
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from grape_bench.bias import Bias, LowRank
from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._groups import own
from grape_bench.encodings._numbers import Numbers
from grape_bench.encodings._slopes import slopes


class GrapeA(Encoding):
    """Subtract the distance times a slope that the query, the key or both decide.

        b(i, j) = -(i - j) m_h softplus(r_h) (gate(v_h, q_i) + gate(u_h, k_j)),   gate(u, x) = softplus(u . x / sqrt(D))

    m_h are ALiBi's slopes. For one pair of tokens it is a unipotent one-parameter group of the distance, for a sequence
    it is none: a bias does not add up along a path. With both gates it is a product of three channels.

    Args:
        site: each of its query heads has a slope and gates.
        gates: which of the two terms there are.
        normalise: u and v count by their direction alone, as in the published code; the paper takes them as they are.
        sloped: m_h as in the published code; 1 as in the paper.

    Source: Zhang et al. 2025, arXiv:2512.07805, section 4, and its code, which starts softplus(r_h) at 1 and draws u
        and v from N(0, 1/D).
    """

    domain = "causal"
    group = "translations, one for each pair of tokens"
    representation = "unipotent"
    laws = ("relative", "unipotent")
    variants = ("gates='query'", "gates='key'", "normalise=False, sloped=False")
    by_content = True

    def __init__(
        self,
        site: Site,
        *,
        gates: Literal["query", "key", "both"] = "both",
        normalise: bool = True,
        sloped: bool = True,
    ):
        super().__init__()
        self.kv_heads, self.normalise = site.kv_heads, normalise
        self._slopes = Numbers(partial(slopes, site.heads)) if sloped else None  # m
        self.stored = nn.Parameter(torch.full((site.heads,), math.log(math.e - 1)))  # r
        self.u = nn.Parameter(torch.zeros(site.heads, site.head_dim)) if gates != "query" else None
        self.v = nn.Parameter(torch.zeros(site.heads, site.head_dim)) if gates != "key" else None
        self.features = 0 if self.u is None else site.heads // site.kv_heads

    def reset(self, generator: torch.Generator) -> None:
        for side in (self.u, self.v):
            if side is not None:
                nn.init.normal_(side, 0.0, side.shape[1] ** -0.5, generator=generator)

    def state(self, k: Tensor, at: At, carry: None) -> tuple[Tensor | None, None]:
        return (None if self.u is None else self._gate(self.u, k)), None

    def bias(self, q: Tensor, features: Tensor | None, at: At) -> Bias:
        wide = torch.promote_types(q.dtype, torch.float32)
        i, j = at.centred(wide)
        slope = F.softplus(self.stored.to(wide))[:, None, None]  # (H, 1, 1)
        if self._slopes is not None:
            slope = slope * self._slopes.on(q.device, wide)[:, None, None]
        u, v, row = [], [], None
        if self.v is not None:
            steep = slope * self._gate(self.v, q)  # (B, H, T, 1)
            u, v, row = [steep], [j], -steep * i
        if features is not None:
            near = slope * own(len(slope), features)  # (H, 1, g)
            u, v = [*u, -near * i, near], [*v, features, j * features]
        return LowRank(_join(u, q.shape[:-1]), _join(v, (len(q), self.kv_heads, j.shape[2])), row)

    def _gate(self, towards: Tensor, x: Tensor) -> Tensor:
        """softplus(u . x / sqrt(D)) of x (B, h, T, D), for each of the H / h vectors u of a head: (B, h, T, H / h)."""
        wide = torch.promote_types(x.dtype, torch.float32)
        towards = towards.to(wide).unflatten(0, (x.shape[1], -1))
        if self.normalise:
            towards = F.normalize(towards, dim=-1, eps=1e-6)
        return F.softplus(x.to(wide) @ towards.mT * x.shape[-1] ** -0.5)


def _join(parts: list[Tensor], shape: tuple[int, ...]) -> Tensor:
    return torch.cat([one.expand(*shape, -1) for one in parts], dim=-1)


PLUGIN = GrapeA
