"""LongRoPE: a searched factor for each plane, and another set of them for long texts."""

import math
from typing import Literal

from torch import Tensor

from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._rotary import Rotation, spectrum
from grape_bench.errors import Unsupported


class LongRope(Encoding):
    """RoPE with each plane slowed by a factor of its own, one set for texts up to the training length, one beyond.

        w'_i = w_i / short_i   up to L keys,   w_i / long_i beyond,   w_i = base^(-2i/D)
        q and k times sqrt(1 + ln s / ln L)

    The factors of a trained model come from a search. Without one, `short` is 1 and `long` is s^(2i/(D-2)): nothing
    for the fastest plane and s for the slowest, which is NTK-aware RoPE, one of the points where the search starts.

    Args:
        site: its head_dim D must be even and at least 4; its train_length is the default L.
        factor: s, how many times longer the text may grow; original: L, tokens, None for the training length.
        short, long: D/2 factors each, None for those above.
        base: of the spectrum, no unit.
        layout: plane i holds channels (2i, 2i+1) when `interleaved`, (i, i + D/2) when `half`.

    Raises:
        Unsupported: D is odd or below 4, factor >= 1 or original > 1 does not hold, or there are not D/2 factors > 0.

    Source: Ding et al. 2024, arXiv:2402.13753, sections 3.2 and 3.3; the scale as in Phi-3's program; the default
    factors: ours.
    """

    group = "translations, one action on each side of L"
    representation = "SO(2) blocks, and a scale"
    laws = ("relative",)  # G(0) is the scale
    breaks = ("prefix", "streaming")
    not_streaming = "keys that were cached before the text outgrew the training length were turned by other factors"
    variants = ("factor=8.0, layout='half'",)

    def __init__(
        self,
        site: Site,
        *,
        factor: float = 4.0,
        original: int | None = None,
        short: tuple[float, ...] | None = None,
        long: tuple[float, ...] | None = None,
        base: float = 10_000.0,
        layout: Literal["interleaved", "half"] = "interleaved",
    ):
        super().__init__()
        size, self.length = site.head_dim, site.train_length if original is None else original
        if not (factor >= 1 and self.length > 1 and size >= 4):
            raise Unsupported("longrope: it takes factor >= 1, original > 1 and a head_dim of at least 4")
        frequency, scale = spectrum(size, base), math.sqrt(1 + math.log(factor) / math.log(self.length))
        if short is None:
            short = (1.0,) * (size // 2)
        if long is None:
            long = tuple(factor ** (2 * plane / (size - 2)) for plane in range(size // 2))
        if any(len(one) != size // 2 or min(one) <= 0 for one in (short, long)):
            raise Unsupported(f"longrope: `short` and `long` are {size // 2} factors above 0 each, one a plane")
        self.short, self.long = (
            Rotation(tuple(w / f for w, f in zip(frequency, one, strict=True)), layout, scale) for one in (short, long)
        )

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        return (self.short if at.k_pos.shape[-1] <= self.length else self.long)(q, k, at)


PLUGIN = LongRope
