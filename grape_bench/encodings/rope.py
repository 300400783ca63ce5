"""RoPE: rotary position embedding."""

from typing import Literal

import torch
from torch import Tensor

from grape_bench.encodings import At, Encoding, Site
from grape_bench.errors import Unsupported


class Rope(Encoding):
    """Turn each pair of channels by an angle that grows with position.

        x'_t = G(t) x_t,   G(t) = diag_i R(t * base^(-2i/D)),   i = 0 .. D/2 - 1

    R(a) turns plane i by a radians. G(t)^T G(s) = G(s - t), so a score depends on distance alone. In GRAPE's terms:
    multiplicative, with commuting planes.

    Args:
        site: its head_dim D must be even.
        base: of the spectrum, no unit. A larger base turns more slowly.
        layout: plane i holds channels (2i, 2i+1) when `interleaved`, (i, i + D/2) when `half`.

    Raises:
        Unsupported: D is odd.

    Source: Su et al. 2021, arXiv:2104.09864, section 3.4.2; the half layout is that of GPT-NeoX and Llama.
    """

    group = "translations"
    representation = "SO(2) blocks"
    laws = ("relative", "isometric")

    def __init__(self, site: Site, *, base: float = 10_000.0, layout: Literal["interleaved", "half"] = "interleaved"):
        super().__init__()
        if site.head_dim % 2:
            raise Unsupported(f"rope: head_dim must be even, got {site.head_dim}")
        self.base, self.layout = base, layout

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        return self._turn(q, at.q_pos), self._turn(k, at.k_pos)

    def _turn(self, x: Tensor, positions: Tensor) -> Tensor:
        # At least float32: bfloat16 cannot tell position 256 from 257.
        wide = torch.promote_types(x.dtype, torch.float32)
        exponent = torch.arange(0, x.shape[-1], 2, device=x.device, dtype=wide) / x.shape[-1]
        angle = positions.to(wide)[..., None] * self.base**-exponent  # (T, D/2) or (B, T, D/2)
        angle = angle if angle.dim() == 2 else angle[:, None]
        cos, sin = angle.cos(), angle.sin()
        pair = -1 if self.layout == "interleaved" else -2
        first, second = x.to(wide).unflatten(-1, (-1, 2) if pair == -1 else (2, -1)).unbind(pair)
        turned = torch.stack((first * cos - second * sin, first * sin + second * cos), dim=pair)
        return turned.flatten(-2).to(x.dtype)


PLUGIN = Rope
