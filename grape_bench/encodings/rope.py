"""RoPE: rotary position embedding."""

from typing import Literal

from torch import Tensor

from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._rotary import Rotation, spectrum
from grape_bench.errors import Unsupported


class Rope(Encoding):
    """Turn each pair of channels by an angle that grows with position.

        x'_t = G(t) x_t,   G(t) = diag_i R(t * base^(-2i/r)),   i = 0 .. r/2 - 1,   r = D

    R(a) turns plane i by a radians. G(t)^T G(s) = G(s - t), so a score depends on distance alone. In GRAPE's terms:
    multiplicative, with commuting planes.

    Args:
        site: its head_dim D must be even.
        base: of the spectrum, no unit. A larger base turns more slowly. A pair is the base of the first and of the
            last key head, those between on a geometric row.
        layout: plane i holds channels (2i, 2i+1) when `interleaved`, (i, i + r/2) when `half`.
        fraction: the first r = fraction * D channels turn, the others tell nothing of position.
        keep: of the r/2 planes the floor(keep * r/2) fastest turn, and the slow ones stand still.

    Raises:
        Unsupported: the channels that turn make no pairs, or there are none; or a base is not above 0.

    Source: Su et al. 2021, arXiv:2104.09864, section 3.4.2. The half layout and `fraction` are those of GPT-NeoX,
    `keep` is p-RoPE of Barbero et al. 2024, arXiv:2410.06205; bases that differ by head: ours.
    """

    group = "translations"
    representation = "SO(2) blocks"
    laws = ("relative", "identity", "inverse", "homomorphism", "isometric")
    variants = ("base=1e6", "layout='half'", "base=(100, 1e6)", "fraction=0.5, layout='half'", "keep=0.5")

    def __init__(
        self,
        site: Site,
        *,
        base: float | tuple[float, float] = 10_000.0,
        layout: Literal["interleaved", "half"] = "interleaved",
        fraction: float = 1.0,
        keep: float = 1.0,
    ):
        super().__init__()
        turning = fraction * site.head_dim
        if turning % 2 or not 0 < fraction <= 1:
            raise Unsupported(f"rope: the channels that turn must be an even number up to head_dim, got {turning:g}")
        planes = int(turning) // 2
        kept = int(keep * planes)
        if not 0 < kept <= planes:
            raise Unsupported(f"rope: between 1 and all of the {planes} planes turn, keep={keep} leaves {kept}")

        def row(base: float) -> tuple[float, ...]:
            return spectrum(2 * planes, base)[:kept] + (0.0,) * (planes - kept)

        rows = tuple(map(row, _bases(*base, site.kv_heads))) if isinstance(base, tuple) else row(base)
        self.rotation = Rotation(rows, layout)

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        return self.rotation(q, k, at)


def _bases(first: float, last: float, heads: int) -> list[float]:
    if min(first, last) <= 0:
        raise Unsupported(f"rope: both bases must be above 0, got {first} and {last}")
    return [first * (last / first) ** (head / max(heads - 1, 1)) for head in range(heads)]


PLUGIN = Rope
