"""xPos: RoPE whose scores fade with distance, plane by plane."""

import math
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._numbers import Numbers
from grape_bench.encodings._rotary import phase, spectrum, table, turn
from grape_bench.errors import Unsupported

_ROOM = 1000.0  # how much larger than 1, or smaller, the values themselves may be


class Xpos(Encoding):
    """Turn pairs of channels as RoPE does, shrinking queries and growing keys with position.

        q'_t = z_i^(t/scale_base) R(t w_i) q_t,   k'_t = z_i^(-t/scale_base) R(t w_i) k_t
        z_i = (2i/D + 0.4) / 1.4,   w_i = base^(-2i/D)

    A score has the factor z_i^((i-j)/scale_base) in each plane, so it fades towards the past, fast planes first, and
    would grow without bound towards the future. The exponents count from position 0 and never from the middle of a
    text, so a key keeps its scale when the text grows.

    Args:
        site: its head_dim D must be even; its longest text must not overflow.
        scale_base: tokens in which plane i fades by z_i.
        base: of the spectrum, no unit.
        layout: plane i holds channels (2i, 2i+1) when `interleaved`, (i, i + D/2) when `half`.

    Raises:
        Unsupported: D is odd, scale_base is not above 0, or the scale of the longest text overflows: from 33,400
            tokens in float32 and bfloat16, from 1,700 in float16, at the default scale_base.

    Source: Sun et al. 2022, arXiv:2212.10554, section 3.1.
    """

    domain = "causal"
    group = "translations"
    representation = "complex scalars, SO(2) times R+, as blocks"
    laws = ("relative", "identity", "inverse", "homomorphism")
    variants = ("layout='half'", "scale_base=1024.0")

    def __init__(
        self,
        site: Site,
        *,
        scale_base: float = 512.0,
        base: float = 10_000.0,
        layout: Literal["interleaved", "half"] = "interleaved",
    ):
        super().__init__()
        size = site.head_dim
        if scale_base <= 0:
            raise Unsupported(f"xpos: scale_base must be above 0, got {scale_base}")
        self.frequency, self.layout, self.longest = spectrum(size, base), layout, site.longest
        self.growth = tuple(-math.log((2 * i / size + 0.4) / 1.4) / scale_base for i in range(size // 2))
        self._numbers = Numbers(partial(torch.tensor, (self.frequency, self.growth)))
        self._fit(torch.float32)

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        self._fit(q.dtype)
        return self._turn(q, at, "q"), self._turn(k, at, "k")

    def _turn(self, x: Tensor, at: At, side: Literal["q", "k"]) -> Tensor:
        wide = torch.promote_types(x.dtype, torch.float32)

        def make() -> Tensor:
            frequency, growth = self._numbers.on(x.device, wide)
            positions, growth = (at.q_pos, -growth) if side == "q" else (at.k_pos, growth)
            return table(positions, frequency) * phase(positions, growth).exp()

        return turn(x, at.once(("xpos", side, self.frequency, self.growth, wide), make), self.layout)

    def _fit(self, dtype: torch.dtype) -> None:
        room = math.log(torch.finfo(dtype).max / _ROOM) / self.growth[0]
        if self.longest > room:
            raise Unsupported(f"xpos overflows {dtype} after {room:.0f} tokens, and {self.longest} are asked for")


PLUGIN = Xpos
