"""KERPLE: distances through a learned, conditionally positive definite kernel."""

import math
from typing import Literal

import torch
from torch import Tensor, nn

from grape_bench.bias import Bias, Toeplitz
from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._heads import rows_of

_LEAST = 1e-2


class Kerple(Encoding):
    """Subtract a learned growing function of the distance from the scores, in one of two forms.

        log      b(i, j) = -p_h log(1 + a_h |i - j|)
        power    b(i, j) = -a_h |i - j|^(p_h),   p_h at most 2

    Both parameters are at least 0.01, being reflected at their bounds, where the authors' program sets them back. They
    start at p ~ U(0, 2) and a ~ U(0, 1). The function is even, so an encoder cannot tell left from right by it.

    Args:
        site: its heads have two parameters each, in each layer.
        form: `log` or `power`.
        heads: which heads share their parameters.

    Source: Chi et al. 2022, arXiv:2205.09921, section 4.
    """

    group = "translations"
    representation = "conditionally positive definite kernel"
    laws = ("relative", "reflection")
    variants = ("form='power'", "heads='half'")

    rows: Tensor

    def __init__(
        self, site: Site, *, form: Literal["log", "power"] = "log", heads: Literal["own", "shared", "half"] = "own"
    ):
        super().__init__()
        self.form = form
        self.register_buffer("rows", rows_of(site.heads, heads), persistent=False)
        self.p, self.a = (nn.Parameter(torch.ones(int(self.rows.max()) + 1)) for _ in range(2))

    def reset(self, generator: torch.Generator) -> None:
        with torch.no_grad():
            self.p.uniform_(0.0, 2.0, generator=generator)
            self.a.uniform_(0.0, 1.0, generator=generator)

    def bias(self, q: Tensor, features: Tensor | None, at: At) -> Bias:
        wide = torch.promote_types(q.dtype, torch.float32)
        p = _within(self.p[self.rows].to(wide), 2.0 if self.form == "power" else math.inf)
        a = _within(self.a[self.rows].to(wide), math.inf)
        return Toeplitz(self._values, [p, a], at.q_pos, at.k_pos, uniform=at.uniform)

    def _values(self, distance: Tensor, p: Tensor, a: Tensor) -> Tensor:
        p, a = (one.reshape(-1, *[1] * distance.dim()) for one in (p, a))
        far = distance.abs().to(p.dtype)
        return -p * (a * far).log1p() if self.form == "log" else -a * far**p


def _within(x: Tensor, most: float) -> Tensor:
    # A clamp stops the gradient beyond a bound, and passing it on would be the gradient of another function.
    above = x - _LEAST
    if most == math.inf:
        return _LEAST + above.abs()
    width = most - _LEAST
    return most - (above.remainder(2 * width) - width).abs()


PLUGIN = Kerple
