"""GRAPE-AP: a bias that is summed along the path from key to query."""

from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from grape_bench.bias import Bias, Rowwise
from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._groups import pack, unpack
from grape_bench.encodings._numbers import Numbers
from grape_bench.encodings._places import ahead
from grape_bench.encodings._rotary import table, turn
from grape_bench.encodings._slopes import slopes
from grape_bench.errors import Unsupported


class GrapeAp(Encoding):
    """Let the query ask each token on its way to a key how much of what lies behind it should fade.

        b(i, j) = sum_{l=j+1..i} m_h log sigmoid(p_i . R(l) n(p_l) / P),   p_l = W_h x_l

    R(l) turns all planes of the P channels by l radians, n divides by the root mean square, and m_h are ALiBi's slopes.
    The paper normalises p_i as well, its code does not. Both depend on l itself, so the bias is not relative; it is
    once p_i turns too.

    Args:
        site: each of its query heads has probes.
        form: what the query brings: `code` p_i, `paper` n(p_i), `relative` R(i) n(p_i).
        probes: P, channels of a probe; even.
        eps: added to the mean square; the default is float32's, which is the code's for every dtype but float64.

    Raises:
        Unsupported: P is odd or below 2, or eps is below 0.

    Source: Zhang et al. 2025, arXiv:2512.07805, section 5, and its code; it turns by minus the angle, we by plus. The
        form `relative` is ours.
    """

    domain = "causal"
    group = "paths to one query"
    representation = "unipotent"
    variants = ("form='paper'", "form='relative'", "probes=4")
    by_content = True

    def __init__(
        self,
        site: Site,
        *,
        form: Literal["code", "paper", "relative"] = "code",
        probes: int = 8,
        eps: float = 1.1920928955078125e-07,
    ):
        super().__init__()
        if probes < 2 or probes % 2 or eps < 0:
            raise Unsupported(f"grape_ap: probes must be even and at least 2, eps at least 0, got {probes} and {eps}")
        self.heads, self.kv_heads = site.heads, site.kv_heads
        self._slopes = Numbers(partial(slopes, site.heads))  # m
        self.form, self.probes, self.eps = form, probes, eps
        self.laws = ("relative",) if form == "relative" else ()
        self.features = probes * site.heads // site.kv_heads
        self.weight = nn.Parameter(torch.zeros(site.heads * probes, site.width))

    def reset(self, generator: torch.Generator) -> None:
        nn.init.normal_(self.weight, 0.0, 0.5 * self.weight.shape[1] ** -0.5, generator=generator)

    def state(self, k: Tensor, at: At, carry: None) -> tuple[Tensor, None]:
        return pack(self._turn(self._norm(self._probe(at.x)), at, "k"), self.kv_heads), None

    def bias(self, q: Tensor, features: Tensor | None, at: At) -> Bias:
        assert features is not None
        asks = self._probe(at.x[:, -q.shape[-2] :])  # the queries are the last of the tokens
        if self.form != "code":
            asks = self._norm(asks)
        if self.form == "relative":
            asks = self._turn(asks, at, "q")
        return Rowwise(self._rows, [asks, unpack(features, self.heads)])

    def _rows(self, rows: slice, scores: Tensor | None, asks: Tensor, told: Tensor) -> Tensor:
        queries, keys = asks.shape[-2], told.shape[-2]
        m = self._slopes.on(asks.device, asks.dtype)[:, None, None]
        fade = m * F.logsigmoid(asks[..., rows, :] @ told.mT / self.probes)  # (B, H, rows, S)
        fade = fade.masked_fill(ahead(rows, queries, keys, asks.device), 0.0)
        # Summed from the query backwards: a total less a running sum would leave rounding where b(i, i) = 0.
        return F.pad(fade[..., 1:], (0, 1)).flip(-1).cumsum(dim=-1).flip(-1)

    def _probe(self, x: Tensor) -> Tensor:
        wide = torch.promote_types(x.dtype, torch.float32)
        probes: Tensor = F.linear(x.to(wide), self.weight.to(wide)).unflatten(-1, (self.heads, -1))
        return probes.transpose(1, 2)

    def _norm(self, p: Tensor) -> Tensor:
        return F.rms_norm(p, (self.probes,), eps=self.eps)

    def _turn(self, p: Tensor, at: At, side: Literal["q", "k"]) -> Tensor:
        positions = at.q_pos if side == "q" else at.k_pos
        one = torch.ones(self.probes // 2, dtype=p.dtype, device=p.device)
        cis = at.once(("grape_ap", side, self.probes, p.dtype), lambda: table(positions, one))
        return turn(p, cis, "half")


PLUGIN = GrapeAp
