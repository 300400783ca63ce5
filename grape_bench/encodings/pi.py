"""PI: position interpolation for RoPE."""

from typing import Literal

from torch import Tensor

from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._rotary import Rotation, spectrum
from grape_bench.errors import Unsupported


class Pi(Encoding):
    """RoPE at positions squeezed by a factor, so that a longer text has angles of the training length.

        w_i = base^(-2i/D) / s

    Args:
        site: its head_dim D must be even.
        factor: s, how many times longer the text may grow.
        base: of the spectrum, no unit.
        layout: plane i holds channels (2i, 2i+1) when `interleaved`, (i, i + D/2) when `half`.

    Raises:
        Unsupported: D is odd, or the factor is below 1.

    Source: Chen et al. 2023, arXiv:2306.15595, section 2.3.
    """

    group = "translations"
    representation = "SO(2) blocks"
    laws = ("relative", "identity", "inverse", "homomorphism", "isometric")
    variants = ("factor=2.0, layout='half'",)

    def __init__(
        self,
        site: Site,
        *,
        factor: float = 4.0,
        base: float = 10_000.0,
        layout: Literal["interleaved", "half"] = "interleaved",
    ):
        super().__init__()
        if factor < 1:
            raise Unsupported(f"pi: the factor must be at least 1, got {factor}")
        self.rotation = Rotation(tuple(w / factor for w in spectrum(site.head_dim, base)), layout)

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        return self.rotation(q, k, at)


PLUGIN = Pi
