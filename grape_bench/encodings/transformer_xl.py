"""Transformer-XL: sinusoidal vectors of the distance beside the keys, and two learned queries."""

from typing import Any, Literal

import torch
from torch import Tensor, nn

from grape_bench.bias import Bias, LowRank, Sum
from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._groups import own
from grape_bench.encodings._heads import rows_of
from grape_bench.errors import Unsupported


class TransformerXl(Encoding):
    """Add what a learned query sees in every key, and what each query sees in a wave of the distance.

        score = (q_i + u_h) . k_j / sqrt(D) + (q_i + v_h) . W_h r(i - j) / sqrt(D)
        r(d) = [sin(w_m d), cos(w_m d)],   w_m = 10000^(-2m/R),   m = 0 .. R/2 - 1

    u . k is made beside each key. By the angle sum the waves are a matrix coefficient of R/2 planes, so nothing is
    shifted or gathered, and the whole is a lift.

    Args:
        site: its width is the default number of channels.
        channels: R, even.
        heads: which heads share u, v and W.

    Raises:
        Unsupported: R is odd, or below 2.

    Source: Dai et al. 2019, arXiv:1901.02860, section 3.3. u and v start at zero.
    """

    group = "translations"
    representation = "SO(2) blocks, read by the query"
    laws = ("relative",)
    variants = ("channels=8", "heads='shared'")
    by_content = True

    rows: Tensor

    def __init__(self, site: Site, *, channels: int | None = None, heads: Literal["own", "shared", "half"] = "own"):
        super().__init__()
        self.channels = site.width if channels is None else channels
        if self.channels < 2 or self.channels % 2:
            raise Unsupported(f"transformer_xl: channels must be even and at least 2, got {self.channels}")
        self.features = site.heads // site.kv_heads  # u . k for each query head of a key head
        self.register_buffer("rows", rows_of(site.heads, heads), persistent=False)
        tables = int(self.rows.max()) + 1
        self.u, self.v = (nn.Parameter(torch.zeros(tables, site.head_dim)) for _ in range(2))
        self.waves = nn.Parameter(torch.zeros(tables, site.head_dim, self.channels))  # W

    def reset(self, generator: torch.Generator) -> None:
        with torch.no_grad():
            self.waves.normal_(0.0, self.channels**-0.5, generator=generator)

    def state(self, k: Tensor, at: At, carry: Any) -> tuple[Tensor, Any]:
        wide = torch.promote_types(k.dtype, torch.float32)
        u = self.u[self.rows].to(wide).reshape(k.shape[1], self.features, k.shape[-1])
        return k.to(wide) @ u.transpose(-1, -2) * k.shape[-1] ** -0.5, carry

    def bias(self, q: Tensor, features: Tensor | None, at: At) -> Bias:
        assert features is not None
        wide = torch.promote_types(q.dtype, torch.float32)
        keys = LowRank(own(q.shape[1], features).expand(1, -1, q.shape[2], -1), features, bounded=True)
        seen = (q.to(wide) + self.v[self.rows].to(wide)[:, None]) @ self.waves[self.rows].to(wide) * q.shape[-1] ** -0.5
        w = 10_000.0 ** (-torch.arange(0, self.channels, 2, device=q.device, dtype=wide) / self.channels)
        i, j = (position * w for position in at.centred(wide))
        s, c = seen.chunk(2, dim=-1)  # the query's shares of sines and of cosines, (B, H, T, R/2)
        turned = torch.cat((s * i.sin() + c * i.cos(), c * i.sin() - s * i.cos()), dim=-1)
        return Sum([keys, LowRank(turned, torch.cat((j.cos(), j.sin()), dim=-1), bounded=True)])


PLUGIN = TransformerXl
