"""A rotation that is none, as an article printed it: the sine pairs neighbours, the cosine pairs halves."""

import torch
from torch import Tensor

from grape_bench.encodings import At, Encoding, Site


class MixedRotation(Encoding):
    """Turn channels by cosines of one pairing and sines of another, and declare what a rotation declares.

        x' = x cos(t w) + P x sin(t w),   w = (w_1 .. w_D/2, w_1 .. w_D/2),   P x = (-x_1, -x_3, .., x_0, x_2, ..)

    Source: the printed code of an article on GRAPE; `verify` must reject it.
    """

    group = "translations"
    representation = "meant as SO(2) blocks"
    laws = ("relative", "identity", "inverse", "homomorphism", "isometric")

    def __init__(self, site: Site, *, base: float = 10_000.0):
        super().__init__()
        self.base = base

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        return self._mix(q, at.q_pos), self._mix(k, at.k_pos)

    def _mix(self, x: Tensor, positions: Tensor) -> Tensor:
        wide = torch.promote_types(x.dtype, torch.float32)
        exponent = torch.arange(0, x.shape[-1], 2, device=x.device, dtype=wide) / x.shape[-1]
        angle = positions.to(wide)[..., None] * self.base**-exponent
        angle = torch.cat((angle, angle), dim=-1)
        swapped = torch.cat((-x[..., 1::2], x[..., ::2]), dim=-1)
        return (x * angle.cos() + swapped * angle.sin()).to(x.dtype)
