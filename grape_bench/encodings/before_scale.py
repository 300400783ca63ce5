"""Before scale: a bias that is added too early, to show the harm."""

from collections.abc import Sequence
from typing import Self

from torch import Tensor

from grape_bench.bias import ALL, Bias
from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._wrapper import Wrapper


class BeforeScale(Wrapper):
    """Add the wrapped encoding's bias before the scores are scaled, so that it counts sqrt(D) times less.

        softmax((q k^T + b) / sqrt(D)) = softmax(q k^T / sqrt(D) + b / sqrt(D))

    A mistake that programs make. A learned bias must then grow sqrt(D) times as large, and its gradient is sqrt(D)
    times as small; a fixed one is another encoding, with slopes that are too flat. Rotations are left as they are.

    Args:
        site: its head_dim is D.
        inner: whose bias it is.

    Source: ours; a mistake that the article on GRAPE warns of.
    """

    group = "that of the wrapped encoding"
    representation = "the wrapped kernel, over sqrt(D)"
    around = "clamp"
    mistake = "a bias that is added before the scale counts sqrt(D) times less"

    def __init__(self, site: Site, inner: Encoding):
        super().__init__()
        self.wrap(inner)
        self.factor = site.head_dim**-0.5

    def bias(self, q: Tensor, features: Tensor | None, at: At) -> Bias | None:
        bias = self.inner.bias(q, features, at)
        return None if bias is None else _Scaled(bias, self.factor)


class _Scaled(Bias):
    """A multiple of a bias. It offers its tiles alone: nobody wants a mistake to be fast."""

    def __init__(self, bias: Bias, factor: float):
        self.bias, self.factor, self.reads_scores = bias, factor, bias.reads_scores

    def tile(self, rows: slice = ALL, cols: slice = ALL, scores: Tensor | None = None) -> Tensor:
        return self.factor * self.bias.tile(rows, cols, scores)

    def leaves(self) -> tuple[Tensor, ...]:
        return self.bias.leaves()

    def with_leaves(self, leaves: Sequence[Tensor]) -> Self:
        return type(self)(self.bias.with_leaves(leaves), self.factor)


PLUGIN = BeforeScale
