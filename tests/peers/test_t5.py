"""T5: which bucket a distance falls into."""

import pytest
import torch
from ours import installed, places
from torch import Tensor

from grape_bench.encodings import At

FAR = 3000
OPTIONS = [(32, 128), (32, 256), (64, 128), (16, 40)]
# The first distance of each bucket of 32 up to 128, all for the past.
STARTS = [*range(17), 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113]


def ours(buckets: int, most: int, causal: bool) -> Tensor:
    """Buckets of the distances FAR .. -FAR: a table of the numbers of its rows is read."""
    encoding = installed(f"t5(buckets={buckets}, max_distance={most})", 1, 2, causal=causal)
    encoding.load_state_dict({"table": torch.arange(buckets, dtype=torch.float64)[None]})
    q, keys = torch.zeros(1, 1, 1, 2), torch.arange(2 * FAR + 1)
    bias = encoding.bias(q.double(), None, At(q[:, 0], torch.tensor([FAR]), keys, uniform=True))
    assert bias is not None
    return bias.tile().flatten()


def loop(buckets: int, most: int, causal: bool) -> Tensor:
    """In whole numbers: d >= exact (most / exact)^(b / n), both sides to the power n."""

    def bucket(distance: int) -> int:
        side, start = (buckets, 0) if causal else (buckets // 2, buckets // 2 * (distance < 0))
        far, exact = (max(distance, 0) if causal else abs(distance)), side // 2
        if far < exact:
            return start + far
        steps = side - exact
        inside = (b for b in range(steps) if far**steps * exact**b >= most**b * exact**steps)
        return start + exact + max(inside)

    return torch.tensor([float(bucket(d)) for d in range(FAR, -FAR - 1, -1)], dtype=torch.float64)


def transformers(ahead: Tensor, buckets: int, most: int, causal: bool) -> Tensor:
    from transformers.models.t5.modeling_t5 import T5Attention

    return T5Attention._relative_position_bucket(ahead, not causal, buckets, most)


def x_transformers(ahead: Tensor, buckets: int, most: int, causal: bool) -> Tensor:
    from x_transformers.x_transformers import RelativePositionBias

    return RelativePositionBias._relative_position_bucket(ahead, causal, buckets, most)


def torchscale(ahead: Tensor, buckets: int, most: int, causal: bool) -> Tensor:
    from torchscale.component.relative_position_bias import RelativePositionBias

    return RelativePositionBias._relative_position_bucket(ahead, not causal, buckets, most)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("buckets", "most"), OPTIONS)
@pytest.mark.parametrize("theirs", [transformers, x_transformers, torchscale])
def test_every_distance_up_to_3000_has_the_same_bucket(theirs, buckets: int, most: int, causal: bool, meet) -> None:
    ahead = torch.arange(-FAR, FAR + 1)
    given = theirs(ahead, buckets, most, causal).double()
    name = theirs.__name__.replace("_", "-")
    meet.agrees("t5, buckets", name, given, ours(buckets, most, causal), loop(buckets, most, causal), atol=0)


def test_buckets_begin_where_they_must() -> None:
    found = ours(32, 128, causal=True).flip(0)[FAR:].tolist()  # of the distances 0 .. FAR
    assert [found.index(bucket) for bucket in range(32)] == STARTS


def test_the_bias_is_that_of_torchscale(meet) -> None:
    """Its table, read by our encoding."""
    from torchscale.component.relative_position_bias import RelativePositionBias

    theirs = RelativePositionBias(bidirectional=False, n_heads=4)
    encoding = installed("t5", 4)
    table = theirs.relative_attention_bias.weight.detach().double()
    encoding.load_state_dict({"table": table.T})
    x = torch.zeros(1, 200, 32)
    bias = encoding.bias(x.double()[:, None].expand(-1, 4, -1, -1), None, places(x))
    assert bias is not None
    buckets = loop(32, 128, causal=True).long()
    expected = torch.stack([torch.stack([table[buckets[FAR - i + j]] for j in range(200)]) for i in range(200)])
    meet.agrees("t5, bias", "torchscale", theirs(1, 200, 200), bias.tile()[0], expected.permute(2, 0, 1))
