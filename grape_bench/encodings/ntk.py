"""NTK-aware RoPE: a larger base stretches slow planes and leaves fast ones."""

from typing import Literal

from torch import Tensor

from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._rotary import Rotation, spectrum
from grape_bench.errors import Unsupported


class Ntk(Encoding):
    """RoPE with a base so much larger that the slowest plane is squeezed by a factor, and the fastest not at all.

        w_i = (base * s^(D/(D-2)))^(-2i/D) = base^(-2i/D) * s^(-2i/(D-2))

    Args:
        site: its head_dim D must be even and at least 4.
        factor: s, how many times longer the text may grow.
        base: of the spectrum before it is changed, no unit.
        layout: plane i holds channels (2i, 2i+1) when `interleaved`, (i, i + D/2) when `half`.

    Raises:
        Unsupported: D is odd or below 4, or the factor is below 1.

    Source: a post of "bloc97" in r/LocalLLaMA, 2023; as in Peng et al. 2023, arXiv:2309.00071, section 3.1.
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
        size = site.head_dim
        if factor < 1 or size < 4:
            raise Unsupported(f"ntk: factor is at least 1 and head_dim at least 4, got {factor} and {size}")
        self.rotation = Rotation(spectrum(size, base * factor ** (size / (size - 2))), layout)

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        return self.rotation(q, k, at)


PLUGIN = Ntk
