"""Dynamic NTK: RoPE whose base grows with the text, once that is longer than those of the training."""

from typing import Literal

from torch import Tensor

from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._rotary import Rotation, spectrum
from grape_bench.errors import Unsupported


class DynamicNtk(Encoding):
    """RoPE with the base for a text of N keys, which is the plain one up to the training length.

        w_i = (base * s^(D/(D-2)))^(-2i/D),   s = max(1, f N / L - (f - 1))

    All angles change when a key is added, so the scores of one text say nothing of its prefix, and turned keys
    cannot be cached.

    Args:
        site: its head_dim D must be even and at least 4; its train_length is the default L.
        factor: f, how much faster than the text s grows beyond L; at 1 it is N / L.
        original: L, tokens, None for the training length.
        base: of the spectrum up to L, no unit.
        layout: plane i holds channels (2i, 2i+1) when `interleaved`, (i, i + D/2) when `half`.

    Raises:
        Unsupported: D is odd or below 4, or factor > 0 or original >= 1 does not hold.

    Source: a post of "emozilla" in r/LocalLLaMA, 2023; as in Peng et al. 2023, arXiv:2309.00071, section 3.3.
    """

    group = "translations, one action for each length"
    representation = "SO(2) blocks"
    laws = ("relative", "identity", "inverse", "homomorphism", "isometric")
    breaks = ("prefix", "streaming")
    not_streaming = "cached keys were turned with the base of a shorter text"
    variants = ("factor=4.0, layout='half'",)

    def __init__(
        self,
        site: Site,
        *,
        factor: float = 1.0,
        original: int | None = None,
        base: float = 10_000.0,
        layout: Literal["interleaved", "half"] = "interleaved",
    ):
        super().__init__()
        self.length = site.train_length if original is None else original
        if not (factor > 0 and self.length >= 1 and site.head_dim >= 4):
            raise Unsupported("dynamic_ntk: it takes factor > 0, original >= 1 and a head_dim of at least 4")
        spectrum(site.head_dim, base)
        self.factor, self.base, self.layout = factor, base, layout

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        stretch = max(1.0, self.factor * (at.k_pos.shape[-1] / self.length - 1) + 1)
        size = q.shape[-1]
        return Rotation(spectrum(size, self.base * stretch ** (size / (size - 2))), self.layout)(q, k, at)


PLUGIN = DynamicNtk
