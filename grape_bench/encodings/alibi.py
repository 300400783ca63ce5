"""ALiBi: attention with linear biases."""

from functools import partial
from typing import Literal

import torch
from torch import Tensor

from grape_bench.bias import Bias, LowRank, Toeplitz
from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._numbers import Numbers
from grape_bench.encodings._slopes import slopes
from grape_bench.errors import Unsupported


class Alibi(Encoding):
    """Subtract a slope times the distance from the scores: near keys win, and nothing is learned.

        b(i, j) = -m_h |i - j|

    In GRAPE's terms additive: a unipotent one-parameter group. `symmetric` cannot tell left from right, so an encoder
    takes `split`: even heads see the past and themselves, odd heads the future and themselves.

    Args:
        site: its direction decides what `auto` means: `causal` for a decoder, `split` for an encoder.
        form: one of `auto`, `causal`, `symmetric`, `split`.

    Raises:
        Unsupported: the causal form in a bidirectional model.

    Source: Press et al. 2021, arXiv:2108.12409, section 3; the split form: after its authors' advice for encoders.
    """

    group = "translations"
    representation = "unipotent"
    laws: tuple[str, ...] = ("relative", "unipotent", "path")
    variants = ("form='symmetric'",)

    def __init__(self, site: Site, *, form: Literal["auto", "causal", "symmetric", "split"] = "auto"):
        super().__init__()
        self.form = ("causal" if site.causal else "split") if form == "auto" else form
        if self.form == "causal" and not site.causal:
            raise Unsupported("alibi(form='causal') in a bidirectional model would favour the future without bound")
        if self.form == "symmetric":
            self.laws = (*self.laws, "reflection")
        self.heads, self._slopes = site.heads, Numbers(partial(slopes, site.heads))

    def bias(self, q: Tensor, features: Tensor | None, at: At) -> Bias:
        wide = torch.promote_types(q.dtype, torch.float32)
        m = self._slopes.on(q.device, wide)
        if self.form != "causal":
            return Toeplitz(self._values, [m], at.q_pos, at.k_pos, uniform=at.uniform)
        i, j = at.centred(wide)
        u = m[:, None, None].expand(-1, i.shape[2], 1)[None]
        return LowRank(u, j, -m[:, None, None] * i)

    def _values(self, distance: Tensor, m: Tensor) -> Tensor:
        head = (self.heads, *[1] * distance.dim())
        value = -m.reshape(head) * distance.abs()
        if self.form == "symmetric":
            return value
        side = torch.where(torch.arange(self.heads, device=m.device) % 2 == 0, 1, -1).reshape(head)
        return value.masked_fill(distance * side < 0, float("-inf"))


PLUGIN = Alibi
