"""T5: a learned bias for each bucket of distances."""

from typing import Literal

import torch
from torch import Tensor, nn

from grape_bench.bias import Bias, Toeplitz
from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._heads import rows_of
from grape_bench.errors import Unsupported


class T5(Encoding):
    """Add E[h, bucket(i - j)] to the scores: exact near by, logarithmic further on, one bucket beyond.

        bucket(d) = d                                          0 <= d < n/2
                    n/2 + floor(n/2 * ln(2d/n) / ln(2m/n))     up to n - 1,   n buckets, m max_distance

    An encoder gives half the buckets to keys on the right. The table starts at zero. A bucket that no training
    distance reaches is never trained: state max_distance beside the training length.

    Args:
        site: a causal one uses all buckets for the past.
        buckets: number n of both directions together.
        max_distance: tokens from which all distances share the last bucket; `half` is half the training length, so
            that every bucket is trained.
        heads: which heads share a row of the table.

    Raises:
        Unsupported: too few buckets, or a max_distance within the exact ones.

    Source: Raffel et al. 2019, arXiv:1910.10683, section 2.1. T5 does not scale its scores, this model does.
    """

    group = "translations"
    representation = "learned kernel by buckets"
    laws = ("relative",)
    variants = ("buckets=8, max_distance=20", "heads='shared'")
    shared = True
    table_lr = True
    reach_option = "max_distance"

    rows: Tensor

    def __init__(
        self,
        site: Site,
        *,
        buckets: int = 32,
        max_distance: int | Literal["half"] = 128,
        heads: Literal["own", "shared", "half"] = "own",
    ):
        super().__init__()
        if max_distance == "half":
            max_distance = site.train_length // 2
        exact = (buckets if site.causal else buckets // 2) // 2
        if not 1 <= exact < max_distance:
            raise Unsupported(
                f"t5: {buckets} buckets have {exact} exact distances here; there is at least one, and max_distance "
                f"lies beyond them, got {max_distance}"
            )
        self.causal, self.buckets, self.max_distance = site.causal, buckets, max_distance
        self.register_buffer("rows", rows_of(site.heads, heads), persistent=False)
        self.table = nn.Parameter(torch.zeros(int(self.rows.max()) + 1, buckets))

    def bias(self, q: Tensor, features: Tensor | None, at: At) -> Bias:
        table = self.table[self.rows].to(torch.promote_types(q.dtype, torch.float32))
        return Toeplitz(self._values, [table], at.q_pos, at.k_pos, uniform=at.uniform)

    def _values(self, distance: Tensor, table: Tensor) -> Tensor:
        return table[:, self.bucket(distance)]

    def bucket(self, distance: Tensor) -> Tensor:
        """Bucket of each query minus key distance; future keys of a causal model share bucket 0."""
        if self.causal:
            return self._side(distance.clamp(min=0), self.buckets)
        half = self.buckets // 2
        return self._side(distance.abs(), half) + half * (distance < 0)

    def _side(self, far: Tensor, count: int) -> Tensor:
        exact = count // 2
        # float64: a float32 logarithm may round a boundary into the bucket below.
        ratio = (far.double().clamp(min=1) / exact).log() / torch.tensor(self.max_distance / exact).double().log()
        coarse = (exact + (ratio * (count - exact)).long()).clamp(max=count - 1)
        return torch.where(far < exact, far.long(), coarse)


PLUGIN = T5
