"""Sinusoidal: fixed waves added to the token vectors."""

import torch
from torch import Tensor

from grape_bench.encodings import Encoding, Site
from grape_bench.errors import Unsupported


class Sinusoidal(Encoding):
    """Add waves whose periods grow geometrically with the channel.

        e_t[2i] = sin(t w_i),  e_t[2i+1] = cos(t w_i),  w_i = base^(-2i/C),  i = 0 .. C/2 - 1

    A translation turns each pair of channels, e_{t+n} = R(n) e_t, but scores see t itself: absolute.

    Args:
        site: its width C must be even.
        base: of the spectrum, no unit.

    Raises:
        Unsupported: C is odd, or the base is not above 0.

    Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.5.
    """

    group = "translations"
    representation = "phases added to the tokens"

    def __init__(self, site: Site, *, base: float = 10_000.0):
        super().__init__()
        if site.width % 2 or base <= 0:
            raise Unsupported(
                f"sinusoidal: the model's width must be even and the base above 0, got {site.width} and {base}"
            )
        self.base = base

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        wide = torch.promote_types(x.dtype, torch.float32)
        exponent = torch.arange(0, x.shape[-1], 2, device=x.device, dtype=wide) / x.shape[-1]
        angle = positions.to(wide)[..., None] * self.base**-exponent  # (T, C/2) or (B, T, C/2)
        waves = torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)
        return (x.to(wide) + waves).to(x.dtype)


PLUGIN = Sinusoidal
