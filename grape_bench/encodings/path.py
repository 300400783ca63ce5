"""PaTH: reflections that the tokens between a key and a query accumulate."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from grape_bench.bias import Bias, Rowwise
from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._places import ahead


class Path(Encoding):
    """Let each token on the way from key to query take away, or turn over, the part of the key along its own direction.

        logit(i, j) = q_i^T H_i H_{i-1} ... H_{j+1} k_j / sqrt(D),   H_l = 1 - beta_l w_l w_l^T,   |w_l| = 1
        beta_l = 2 sigmoid(g . x_l + s)

    H_l is a projection at beta = 1 and a reflection at 2. Expanding the product gives the plain score and a correction,

        b = -tril(Q W^T) (1 + tril(beta W W^T, -1))^-1 tril(beta W K^T, -1) / sqrt(D)

    which a triangular solve finds for any rows, at T S^2 products. The paper's kernel does so by blocks, and turns
    cached keys in place when it decodes; here a token solves anew. w is a linear map of the token. The paper's is one
    of low rank with a short convolution behind it, which are left out.

    Args:
        site: each of its key heads has directions and strengths.

    Source: Yang et al. 2025, arXiv:2505.16381, section 3.
    """

    domain = "causal"
    group = "products of content's reflections"
    representation = "contractions of R^D, as a bias"
    laws = ("relative",)
    by_content = True

    def __init__(self, site: Site):
        super().__init__()
        self.kv_heads, self.features = site.kv_heads, 2 * site.head_dim + 1
        self.direction = nn.Parameter(torch.zeros(site.kv_heads * site.head_dim, site.width))
        self.gate = nn.Parameter(torch.zeros(site.kv_heads, site.width))
        self.start = nn.Parameter(torch.zeros(site.kv_heads))

    def reset(self, generator: torch.Generator) -> None:
        for weight in (self.direction, self.gate):
            nn.init.normal_(weight, 0.0, weight.shape[1] ** -0.5, generator=generator)

    def state(self, k: Tensor, at: At, carry: None) -> tuple[Tensor, None]:
        wide = torch.promote_types(at.x.dtype, torch.float32)
        x = at.x.to(wide)
        w = F.linear(x, self.direction.to(wide)).unflatten(-1, (self.kv_heads, -1)).transpose(1, 2)
        beta = 2 * F.linear(x, self.gate.to(wide), self.start.to(wide)).sigmoid().transpose(1, 2)
        return torch.cat((F.normalize(w, dim=-1), beta[..., None], k.to(wide)), dim=-1), None

    def bias(self, q: Tensor, features: Tensor | None, at: At) -> Bias:
        assert features is not None
        return Rowwise(_corrections, [q.to(features.dtype), features])


def _corrections(rows: slice, scores: Tensor | None, q: Tensor, features: Tensor) -> Tensor:
    D, T, S = q.shape[-1], q.shape[-2], features.shape[-2]
    w, beta, k = features.split((D, 1, D), dim=-1)
    grouped = q[..., rows, :].unflatten(1, (w.shape[1], -1))  # (B, kv_heads, g, R, D)
    met = (grouped @ w[:, :, None].mT).masked_fill(ahead(rows, T, S, q.device), 0.0)
    taken = beta * w
    # Places below the diagonal alone: what stands on it is read as ones.
    between = torch.linalg.solve_triangular(
        (taken @ w.mT).tril(-1), met.flatten(2, 3), upper=False, left=False, unitriangular=True
    )
    lost = between @ (taken @ k.mT).tril(-1) / math.sqrt(D)  # (B, kv_heads, g R, S)
    of_heads: Tensor = lost.unflatten(2, grouped.shape[2:4]).flatten(1, 2)
    return -of_heads


PLUGIN = Path
