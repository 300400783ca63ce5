"""GRAPE-M in one plane: a rotation of rank two, its plane learned."""

import torch
from torch import Tensor, nn

from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._rotary import phase, spectrum

_PARALLEL = 1e-30  # of s^2: below it the plane has closed to a line, and nothing turns


class GrapeMPlane(Encoding):
    """Turn queries and keys within one learned plane, and leave what is orthogonal to it.

        G(t) = exp(t w L) = 1 + sin(t w s) / s L + (1 - cos(t w s)) / s^2 L^2,   L = a b^T - b a^T

    L^2 is -s^2 on the plane, s^2 = |a|^2 |b|^2 - (a . b)^2 being the squared area that a and b span. This is Rodrigues'
    formula in any dimension, at four products with a vector. a and b start random, of length about one, and speeds w as
    a spectrum over key heads.

    Args:
        site: each of its key heads has a plane and a speed.

    Source: Zhang et al. 2025, arXiv:2512.07805, section 2; the start is ours.
    """

    group = "translations"
    representation = "SO(2) in a learned plane"
    laws = ("relative", "identity", "inverse", "homomorphism", "isometric")

    def __init__(self, site: Site):
        super().__init__()
        self.a = nn.Parameter(torch.zeros(site.kv_heads, site.head_dim))
        self.b = nn.Parameter(torch.zeros(site.kv_heads, site.head_dim))
        self.speed = nn.Parameter(torch.tensor(spectrum(2 * site.kv_heads, base=10_000.0)))  # w

    def reset(self, generator: torch.Generator) -> None:
        for side in (self.a, self.b):
            nn.init.normal_(side, 0.0, side.shape[1] ** -0.5, generator=generator)

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        return self._turn(q, at.q_pos), self._turn(k, at.k_pos)

    def _turn(self, x: Tensor, positions: Tensor) -> Tensor:
        wide = torch.promote_types(x.dtype, torch.float32)
        groups = x.shape[1] // len(self.speed)
        a, b, speed = (one.to(wide).repeat_interleave(groups, dim=0) for one in (self.a, self.b, self.speed))
        minors = a[:, :, None] * b[:, None] - b[:, :, None] * a[:, None]  # L, whose squares sum to 2 s^2
        s = (minors.pow(2).sum(dim=(1, 2)) / 2).clamp(min=_PARALLEL).sqrt()[:, None, None]
        angle = phase(positions, speed[:, None]) * s  # (H, T, 1) or (B, H, T, 1)
        first = _generate(x.to(wide), a, b)
        second = _generate(first, a, b)
        # 1 - cos = 2 sin^2 of half the angle, which loses nothing when s is small.
        return (x + angle.sin() / s * first + 2 * ((angle / 2).sin() / s).square() * second).to(x.dtype)


def _generate(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """L x = a (b . x) - b (a . x) of each head."""
    a, b = a[:, :, None], b[:, :, None]
    return (x @ b) * a.mT - (x @ a) * b.mT


PLUGIN = GrapeMPlane
