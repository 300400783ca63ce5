"""Window: keys out of reach are not seen."""

import torch
from torch import Tensor

from grape_bench.bias import Bias, Toeplitz
from grape_bench.encodings import At, Encoding, Site
from grape_bench.errors import Unsupported


class Window(Encoding):
    """Hide every key that lies W tokens away or further; it is made to be added to another encoding.

        b(i, j) = 0  where |i - j| < W,   -inf elsewhere

    A decoder sees the last W tokens, its own among them; an encoder as many on each side. It tells no order within the
    window. With the training length as the window, training is as it was, and a longer test shows what a model loses
    that reads no further than it was trained to.

    Args:
        site: its train_length is the default window.
        tokens: W.

    Raises:
        Unsupported: a window below 1 token.

    Source: Beltagy et al. 2020, arXiv:2004.05150, section 3.1.
    """

    group = "translations"
    representation = "indicator of an interval"
    laws = ("relative", "reflection")
    variants = ("tokens=3",)
    tells = False
    reach_option = "tokens"

    def __init__(self, site: Site, *, tokens: int | None = None):
        super().__init__()
        self.heads, self.tokens = site.heads, site.train_length if tokens is None else tokens
        if self.tokens < 1:
            raise Unsupported(f"window: a query must see at least 1 token, itself; got {self.tokens}")

    def bias(self, q: Tensor, features: Tensor | None, at: At) -> Bias:
        seen = torch.zeros(self.heads, device=q.device, dtype=torch.promote_types(q.dtype, torch.float32))
        return Toeplitz(self._values, [seen], at.q_pos, at.k_pos, uniform=at.uniform)

    def _values(self, distance: Tensor, seen: Tensor) -> Tensor:
        whole = seen.reshape(-1, *[1] * distance.dim()).expand(-1, *distance.shape)
        return whole.masked_fill(distance.abs() >= self.tokens, float("-inf"))


PLUGIN = Window
