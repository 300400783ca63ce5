"""YaRN: slow planes are interpolated, fast ones left alone, and scores are sharpened."""

import math
from collections.abc import Iterable
from typing import Literal

from torch import Tensor

from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._rotary import Rotation, spectrum
from grape_bench.errors import Unsupported


class Yarn(Encoding):
    """Blend RoPE and position interpolation plane by plane, and lengthen queries and keys.

        w'_i = g_i w_i + (1 - g_i) w_i / s,   w_i = base^(-2i/D),   q and k times m = 1 + ln(s) / 10

    g falls from 1 on planes that turn more than `fast` times in L tokens to 0 on those that turn less than `slow`
    times. By `index` it falls linearly in i, between whole planes, as programs have it; by `turns` linearly in the
    number of turns L w_i / 2 pi, as the paper has it. The two differ.

    Args:
        site: its head_dim D must be even; its train_length is the default L.
        factor: s, how many times longer the text may grow; None for N / L in a text of N > L keys and 1 up to there,
            which is YaRN after a training with RoPE. original: L, tokens, None for the training length.
        fast, slow: turns within L from which a plane is left alone, and up to which it is interpolated.
        ramp: `index` or `turns`.
        scale: m, by whose square scores grow; None for the formula.
        base: of the spectrum, no unit.
        layout: plane i holds channels (2i, 2i+1) when `interleaved`, (i, i + D/2) when `half`.

    Raises:
        Unsupported: D is odd, or factor >= 1, original >= 1, fast > slow > 0 or base > 1 does not hold.

    Source: Peng et al. 2023, arXiv:2309.00071, sections 3.2 to 3.4; `index` as in its authors' program.
    """

    group = "translations"
    representation = "SO(2) blocks, and a scale"
    laws: tuple[str, ...] = ("relative",)  # G(0) is m
    variants = ("ramp='turns', layout='half'", "scale=1.0", "factor=None")

    def __init__(
        self,
        site: Site,
        *,
        factor: float | None = 4.0,
        original: int | None = None,
        fast: float = 32.0,
        slow: float = 1.0,
        ramp: Literal["index", "turns"] = "index",
        scale: float | None = None,
        base: float = 10_000.0,
        layout: Literal["interleaved", "half"] = "interleaved",
    ):
        super().__init__()
        length = site.train_length if original is None else original
        if not ((factor is None or factor >= 1) and length >= 1 and fast > slow > 0 and base > 1):
            raise Unsupported("yarn: it takes factor >= 1, original >= 1, fast > slow > 0 and base > 1")
        self.frequency, self.length = spectrum(site.head_dim, base), length
        turns = [length * w / (2 * math.pi) for w in self.frequency]
        ends = (fast, slow) if ramp == "turns" else _planes(turns[0], base ** (2 / site.head_dim), fast, slow)
        self.kept = _falling(turns if ramp == "turns" else range(len(turns)), *ends)
        self.factor, self.scale, self.layout = factor, scale, layout
        if factor is None:
            self.breaks, self.not_streaming = ("prefix", "streaming"), "cached keys were turned for a shorter text"
        if scale == 1 or (scale is None and factor == 1):
            self.laws = ("relative", "identity", "inverse", "homomorphism", "isometric")

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        factor = max(1.0, at.k_pos.shape[-1] / self.length) if self.factor is None else self.factor
        return self._rotation(factor)(q, k, at)

    def _rotation(self, factor: float) -> Rotation:
        blended = tuple(w * (g + (1 - g) / factor) for w, g in zip(self.frequency, self.kept, strict=True))
        return Rotation(blended, self.layout, 1 + 0.1 * math.log(factor) if self.scale is None else self.scale)


def _planes(most: float, ratio: float, fast: float, slow: float) -> tuple[int, int]:
    """Whole planes between which those lie that turn `fast` and `slow` times, plane i turning most / ratio^i times."""
    first = max(math.floor(math.log(most / fast, ratio)), 0)
    return first, max(math.ceil(math.log(most / slow, ratio)), first)


def _falling(values: Iterable[float], one: float, zero: float) -> list[float]:
    """Linear from 1 to 0 between the two values, and constant outside."""
    width = (zero - one) or 1e-3
    return [min(max((zero - value) / width, 0.0), 1.0) for value in values]


PLUGIN = Yarn
