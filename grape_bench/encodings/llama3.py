"""Llama 3's scaling of RoPE: slow planes are interpolated, fast ones left alone, by wavelength."""

import math
from typing import Literal

from torch import Tensor

from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._rotary import Rotation, spectrum
from grape_bench.errors import Unsupported


class Llama3(Encoding):
    """Interpolate the planes whose waves are longer than the training length, and leave short waves alone.

        w'_i = g_i w_i + (1 - g_i) w_i / s,   w_i = base^(-2i/D)
        g_i = clip((L w_i / 2 pi - low) / (high - low), 0, 1)

    L w_i / 2 pi is the number of turns within L, the length over the wavelength.

    Args:
        site: its head_dim D must be even; its train_length is the default L.
        factor: s, how many times longer the text may grow; original: L, tokens, None for the training length.
        low, high: turns up to which a plane is interpolated, and from which it is left alone.
        base: of the spectrum, no unit.
        layout: plane i holds channels (2i, 2i+1) when `interleaved`, (i, i + D/2) when `half`.

    Raises:
        Unsupported: D is odd, or factor >= 1, original >= 1 or high > low does not hold.

    Source: Meta's program for Llama 3.1, 2024 (meta-llama/llama-models), which has L = 8192 and s = 8; its formula
    is that of Peng et al. 2023, arXiv:2309.00071, section 3.2, with other ends.
    """

    group = "translations"
    representation = "SO(2) blocks"
    laws = ("relative", "identity", "inverse", "homomorphism", "isometric")
    variants = ("factor=8.0, layout='half'",)

    def __init__(
        self,
        site: Site,
        *,
        factor: float = 4.0,
        original: int | None = None,
        low: float = 1.0,
        high: float = 4.0,
        base: float = 10_000.0,
        layout: Literal["interleaved", "half"] = "interleaved",
    ):
        super().__init__()
        length = site.train_length if original is None else original
        if not (factor >= 1 and length >= 1 and high > low):
            raise Unsupported("llama3: it takes factor >= 1, original >= 1 and high > low")

        def scaled(w: float) -> float:
            turns = length * w / (2 * math.pi)
            kept = min(max((turns - low) / (high - low), 0.0), 1.0)
            return kept * w + (1 - kept) * w / factor

        self.rotation = Rotation(tuple(map(scaled, spectrum(site.head_dim, base))), layout)

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        return self.rotation(q, k, at)


PLUGIN = Llama3
