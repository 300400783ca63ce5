"""Reversed: a bias of the distance alone as one band of numbers, read by the fused kernel as if it were a matrix."""

from torch import Tensor

from grape_bench.backends import Backend, Mask
from grape_bench.backends._fused import band_of, fused
from grape_bench.bias import Bias
from grape_bench.errors import Unsupported


class Reversed(Backend):
    """Reverse keys and values, and hand the kernel a mask that is a view of T + S - 1 numbers a head.

        j' = S - 1 - j:   i - j = (i + j') - (S - 1)

    All pairs of one i + j' have one bias, so the rows of the matrix are windows of the band, each one number further
    on: strides (1, 1), and nothing is copied. Pairs that the causal mask hides are -inf in the band itself.

    Raises:
        Unsupported: the bias is no function of the distance on uniform positions, or it learns; or it is no CPU.

    Source: ours.
    """

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, bias: Bias | None, mask: Mask, *, scale: float | None = None
    ) -> Tensor:
        if bias is None:
            raise Unsupported("there is no bias here, so no band of distances either; use sdpa")
        scale = q.shape[-1] ** -0.5 if scale is None else scale
        return fused(q, k, v, mask, scale, band_of(list(bias.parts()), q))


PLUGIN = Reversed
