"""Interpolated: any encoding at positions that are squeezed into the training length, once the text is longer."""

from dataclasses import replace

from torch import Tensor

from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._wrapper import Wrapper, require_reals
from grape_bench.errors import Unsupported


class Interpolated(Wrapper):
    """Position interpolation after training: a text of N tokens is told the places of one of L, in finer steps.

        p' = p min(1, L / N)

    Up to the training length L it is the wrapped encoding, number for number. All places change when a token is added,
    so the scores of one text say nothing of its prefix, and turned keys cannot be cached. `pi` is the other reading:
    one factor for every length, in training too.

    Args:
        site: its train_length is the default L.
        inner: is told the places, which are reals beyond L.
        original: L, tokens, None for the training length.

    Raises:
        Unsupported: original below 1, or an encoding that refuses real positions.

    Source: Chen et al. 2023, arXiv:2306.15595, section 2.3, for RoPE; here around any encoding.
    """

    group = "that of the wrapped encoding, one action for each length"
    representation = "that of the wrapped encoding"
    breaks = ("prefix", "streaming")
    not_streaming = "cached keys stand at the places of a shorter text"

    def __init__(self, site: Site, inner: Encoding, *, original: int | None = None):
        super().__init__()
        self.length = site.train_length if original is None else original
        if self.length < 1:
            raise Unsupported(f"interpolated: the original length must be at least 1 token, got {original}")
        require_reals("interpolated", inner, site)
        self.wrap(inner)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.inner.embed(x, self._squeezed(positions, positions.shape[-1]))

    def moved(self, at: At) -> At:
        keys = at.k_pos.shape[-1]
        if keys <= self.length:
            return at
        there: At = at.once(("interpolated", self.length), lambda: self._there(at, keys))
        return replace(there, x=at.x)

    def _there(self, at: At, keys: int) -> At:
        q_pos, k_pos = (self._squeezed(one, keys) for one in (at.q_pos, at.k_pos))
        return At(at.x, q_pos, k_pos, uniform=False)

    def _squeezed(self, positions: Tensor, tokens: int) -> Tensor:
        # float64: a float32 place is off by more than what an encoding may lose of it.
        return positions if tokens <= self.length else positions.double() * (self.length / tokens)


PLUGIN = Interpolated
