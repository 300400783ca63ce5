"""Randomized: any encoding at random increasing positions."""

from dataclasses import replace

import torch
from torch import Tensor

from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._wrapper import Wrapper
from grape_bench.errors import Unsupported


class Randomized(Wrapper):
    """Tell the wrapped encoding random places instead of 0 .. N-1, so that a long input shows it no new ones.

        p' = s_p,   s_0 < s_1 < ... < s_(N-1) a random subset of {0 .. L-1},   N = 1 + the largest position

    The subset is the N lowest of one random ranking of {0 .. L-1}, which is drawn anew before each training step and
    once for the test, so that all layers and sequences of a batch agree. Exact distances are lost on purpose; order is
    kept. Positions left of the origin mirror those right of it.

    Args:
        site: 4 times its `longest` is the default L.
        inner: is told the places.
        places: L.

    Raises:
        Unsupported: fewer places than the longest sequence has tokens, or positions that are no whole numbers.
        IndexError: a position at or beyond L.

    Source: Ruoss et al. 2023, arXiv:2305.16843, section 3.
    """

    group = "increasing maps of places"
    representation = "that of the wrapped encoding, at random places"
    breaks = ("prefix", "streaming")
    not_streaming = "the random places of all tokens change with each new one"

    ranks: Tensor

    def __init__(self, site: Site, inner: Encoding, *, places: int | None = None):
        super().__init__()
        places = 4 * site.longest if places is None else places
        if places < site.longest:
            raise Unsupported(f"randomized: {places} places are too few for sequences of {site.longest} tokens")
        self.wrap(inner)
        self.laws = tuple(law for law in inner.laws if law in ("isometric", "path"))
        self.register_buffer("ranks", torch.empty(places, dtype=torch.long), persistent=False)
        self._draw(0)

    def redraw(self, generator: torch.Generator) -> None:
        self._draw(int(torch.randint(2**62, (), generator=generator)))
        self.inner.redraw(generator)

    def _draw(self, seed: int) -> None:
        self.seed = seed
        self.ranks.copy_(torch.randperm(len(self.ranks), generator=torch.Generator().manual_seed(seed)))

    def moved(self, at: At) -> At:
        there: At = at.once(("randomized", self.seed, len(self.ranks)), lambda: self._there(at))
        return replace(there, x=at.x)

    def _there(self, at: At) -> At:
        if at.q_pos.is_floating_point() or at.k_pos.is_floating_point():
            raise Unsupported("randomized: a position is a place in the sequence, so it must be a whole number")
        last = torch.maximum(*(p.abs().amax(-1, keepdim=True) for p in (at.q_pos, at.k_pos)))
        taken = (self.ranks <= last).cumsum(-1)  # (L,) or (B, L): how many places are taken, up to each
        return At(at.x, self._places(taken, at.q_pos), self._places(taken, at.k_pos), uniform=False)

    def _places(self, taken: Tensor, positions: Tensor) -> Tensor:
        """The place at which the number of taken ones reaches position + 1."""
        found = torch.searchsorted(taken, positions.abs() + 1)
        place = torch.arange(len(self.ranks), device=found.device)[found]  # where there are too few, this raises
        return torch.where(positions < 0, -place, place)


PLUGIN = Randomized
