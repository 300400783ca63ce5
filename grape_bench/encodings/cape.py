"""CAPE: any encoding at positions that training shifts, jitters and stretches."""

import math
from dataclasses import replace

import torch
from torch import Tensor

from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._wrapper import Wrapper, require_reals
from grape_bench.errors import Unsupported


class Cape(Wrapper):
    """Augment positions in training, and tell them as they are in a test.

        p'_i = (p_i + shift + jitter_i) * factor
        shift ~ U(-a, a),  jitter_i ~ U(-b, b),  log factor ~ U(-log c, log c)

    Drawn anew before each training step, one draw for all layers and sequences of the batch; the paper draws for each
    sequence. Before the first draw positions are as they are. Up to b = 0.5 tokens keep their order.

    Args:
        site: there is a jitter for each token of its longest sequence.
        inner: must take real positions.
        shift: a, tokens; local: b, tokens; scale: c, no unit.

    Raises:
        Unsupported: the wrapped encoding takes whole positions alone, or an option is out of range.

    Source: Likhomanenko et al. 2021, arXiv:2106.03143. The defaults are ours.
    """

    group = "affine maps of the line"
    representation = "that of the wrapped encoding, at augmented positions"

    jitter: Tensor

    def __init__(self, site: Site, inner: Encoding, *, shift: float = 5.0, local: float = 0.5, scale: float = 1.03):
        super().__init__()
        if shift < 0 or local < 0 or scale < 1:
            raise Unsupported(f"cape: shift and local are at least 0, scale at least 1; got {shift}, {local}, {scale}")
        require_reals("cape", inner, site)
        self.wrap(inner)
        self.options = shift, local, scale
        self.seed, self.shift, self.factor = 0, 0.0, 1.0
        self.register_buffer("jitter", torch.zeros(site.longest), persistent=False)

    def redraw(self, generator: torch.Generator) -> None:
        self.seed = int(torch.randint(2**62, (), generator=generator))
        self.inner.redraw(generator)
        own, (shift, local, scale) = torch.Generator().manual_seed(self.seed), self.options
        draws = 2 * torch.rand(2 + len(self.jitter), generator=own) - 1
        self.shift, self.factor = shift * draws[0].item(), math.exp(math.log(scale) * draws[1].item())
        self.jitter.copy_(local * draws[2:])

    def moved(self, at: At) -> At:
        if not self.training:
            return at
        wide = torch.promote_types(at.x.dtype, torch.float32)
        key = ("cape", self.seed, self.options, len(self.jitter), wide)
        there: At = at.once(key, lambda: self._there(at, wide))
        return replace(there, x=at.x)

    def _there(self, at: At, wide: torch.dtype) -> At:
        jitter = self.jitter[: at.k_pos.shape[-1]].to(wide)  # by place in the sequence, where queries are the last
        q, k = ((p.to(wide) + self.shift + jitter[-p.shape[-1] :]) * self.factor for p in (at.q_pos, at.k_pos))
        return At(at.x, q, k, uniform=False)


PLUGIN = Cape
