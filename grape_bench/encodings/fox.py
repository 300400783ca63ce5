"""FoX: forgetting attention."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from grape_bench.bias import Bias, LowRank
from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._groups import own, pack, unpack


class Fox(Encoding):
    """Let each token close a gate on all that lies before it, a little or entirely.

        b(i, j) = sum_{l=j+1..i} log f_l = c_i - c_j,   f_l = sigmoid(w_h . x_l + s_h),   c_i = sum_{l<=i} log f_l

    A key is forgotten by what came after it, not by its own gate. In GRAPE's terms additive: a unipotent path, whose
    steps content decides; constant gates f = e^(-m_h) make it ALiBi. Weights start small, so every gate near
    sigmoid(s_h).

    Args:
        site: one gate for each of its query heads.
        start: initial s_h; 0 halves each token's weight in the next one, 5 hardly forgets.

    Source: Lin et al. 2025, arXiv:2503.02130, section 3; start of the weights: Zhang et al. 2025, arXiv:2512.07805.
    """

    domain = "causal"
    group = "sums of log gates"
    representation = "unipotent"
    laws = ("relative", "path")
    variants = ("start=5.0",)
    by_content = True

    def __init__(self, site: Site, *, start: float = 0.0):
        super().__init__()
        self.heads, self.kv_heads = site.heads, site.kv_heads
        self.features = site.heads // site.kv_heads
        self.weight = nn.Parameter(torch.zeros(site.heads, site.width))
        self.start = nn.Parameter(torch.full((site.heads,), float(start)))

    def reset(self, generator: torch.Generator) -> None:
        nn.init.normal_(self.weight, 0.0, 0.5 * self.weight.shape[1] ** -0.5, generator=generator)

    def state(self, k: Tensor, at: At, carry: Tensor | None) -> tuple[Tensor, Tensor]:
        wide = torch.promote_types(at.x.dtype, torch.float32)
        gate = F.linear(at.x.to(wide), self.weight.to(wide), self.start.to(wide))
        total = F.logsigmoid(gate).cumsum(dim=1)  # (B, S, H)
        total = total if carry is None else total + carry
        return pack(total.transpose(1, 2)[..., None], self.kv_heads), total[:, -1:]

    def bias(self, q: Tensor, features: Tensor | None, at: At) -> Bias:
        assert features is not None
        rows = q.shape[-2]
        u = own(self.heads, features).expand(1, -1, rows, -1)
        return LowRank(u, -features, unpack(features, self.heads)[..., -rows:, :])


PLUGIN = Fox
