"""T5's buckets by their known boundaries, and its bias number by number."""

import math

import pytest
import torch

from grape_bench.attention import attend
from grape_bench.backends import Backend, Mask
from grape_bench.backends.eager import Eager
from grape_bench.backends.sdpa import Sdpa
from grape_bench.encodings import At, Site, build, build_layers
from grape_bench.encodings.t5 import T5
from grape_bench.errors import Unsupported

# The first distance of each bucket, (buckets, max_distance) = (32, 128): of a decoder, and of one side of an encoder.
CAUSAL = [*range(17), 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113]
ONE_SIDE = [*range(9), 12, 16, 23, 32, 46, 64, 91]


def t5(*, causal: bool, buckets: int = 32, max_distance: int = 128) -> T5:
    encoding = build(f"t5(buckets={buckets}, max_distance={max_distance})", Site(16, 4, 4, 4, 64, 64, causal=causal))
    assert isinstance(encoding, T5)
    return encoding


def starts(buckets: list[int]) -> list[int]:
    """The first distance of each bucket, in order of distance."""
    return [d for d in range(len(buckets)) if d == 0 or buckets[d] != buckets[d - 1]]


def test_the_boundaries_of_a_decoder_are_the_known_ones() -> None:
    got = t5(causal=True).bucket(torch.arange(3000)).tolist()
    assert starts(got) == CAUSAL
    assert sorted(set(got)) == list(range(32))
    assert got == sorted(got)


def test_the_boundaries_of_an_encoder_are_the_known_ones_on_both_sides() -> None:
    encoding = t5(causal=False)
    past, future = encoding.bucket(torch.arange(3000)).tolist(), encoding.bucket(-torch.arange(3000)).tolist()
    assert starts(past) == ONE_SIDE
    assert [past[d] for d in ONE_SIDE] == list(range(16))
    assert future[0] == past[0] == 0
    assert [one - 16 for one in future[1:]] == past[1:]


def test_near_distances_have_a_bucket_each() -> None:
    assert t5(causal=True).bucket(torch.arange(17)).tolist() == list(range(17))
    assert t5(causal=False).bucket(torch.arange(9)).tolist() == list(range(9))


def test_future_keys_of_a_decoder_share_the_bucket_of_distance_zero() -> None:
    assert set(t5(causal=True).bucket(-torch.arange(300)).tolist()) == {0}


@pytest.mark.parametrize(("buckets", "max_distance"), [(32, 128), (16, 64), (64, 1000), (8, 20)])
def test_a_bucket_is_the_floor_of_a_logarithm(buckets: int, max_distance: int) -> None:
    """By whole powers, with no logarithm that could round: floor(e x) >= n exactly where far^c >= m^n e^(c - n)."""
    exact = buckets // 2
    coarse = buckets - exact
    got = t5(causal=True, buckets=buckets, max_distance=max_distance).bucket(torch.arange(2 * max_distance)).tolist()
    for far, bucket in enumerate(got):
        if far < exact:
            assert bucket == far
            continue
        step = sum(far**coarse >= max_distance**n * exact ** (coarse - n) for n in range(1, coarse))
        assert bucket == exact + step


@pytest.mark.parametrize("causal", [True, False])
def test_the_bias_reads_the_table_at_the_bucket(causal: bool) -> None:
    encoding = t5(causal=causal, buckets=8, max_distance=16).double()
    with torch.no_grad():
        encoding.table.copy_(torch.arange(32.0).reshape(4, 8))
    q = torch.zeros(1, 4, 20, 4, dtype=torch.float64)
    for uniform in (True, False):
        bias = encoding.bias(q, None, At(q, torch.arange(20), torch.arange(20), uniform))
        assert bias is not None
        got = bias.tile()[0]
        for h in range(4):
            for i in range(20):
                for j in range(20):
                    assert got[h, i, j].item() == 8 * h + bucket(i - j, causal)


def bucket(distance: int, causal: bool) -> int:
    """8 buckets up to distance 16, written out."""
    if causal:
        firsts = [0, 1, 2, 3, 4, 6, 8, 12]  # 4 * 4^(n / 4): 4, 5.7, 8, 11.3
        return sum(max(distance, 0) >= one for one in firsts) - 1
    firsts = [0, 1, 2, 6]  # 2 * 8^(n / 2): 2, 5.7
    return sum(abs(distance) >= one for one in firsts) - 1 + 4 * (distance < 0)


def test_it_starts_as_no_bias_at_all() -> None:
    assert not t5(causal=True).table.any()


def test_the_gradient_of_a_bucket_counts_its_pairs() -> None:
    encoding = t5(causal=True, buckets=8, max_distance=16)
    q = torch.zeros(1, 4, 10, 4)
    bias = encoding.bias(q, None, At(q, torch.arange(10), torch.arange(10), uniform=True))
    assert bias is not None
    bias.tile().sum().backward()
    counts = [0] * 8
    for i in range(10):
        for j in range(10):
            counts[bucket(i - j, causal=True)] += 1
    assert encoding.table.grad is not None
    assert encoding.table.grad.tolist() == [[float(one) for one in counts]] * 4


@pytest.mark.parametrize("size", [4, 64])
def test_the_bias_is_added_as_it_is_whatever_the_scale_of_scores(size: int) -> None:
    """Without content the weights are the softmax of the table: no factor sqrt(D) on it, and none below."""
    encoding = build("t5(buckets=8, max_distance=16)", Site(4 * size, 4, 4, size, 64, 64, causal=True)).double()
    assert isinstance(encoding, T5)
    with torch.no_grad():
        encoding.table.copy_(torch.randn(4, 8, generator=torch.Generator().manual_seed(0)))
    nothing, at = torch.zeros(1, 4, 20, size, dtype=torch.float64), torch.arange(20)
    v = torch.eye(20, dtype=torch.float64).expand(1, 4, -1, -1)
    call = At(nothing, at, at, uniform=True)
    weights = attend(encoding, Eager(), (nothing, nothing, v), call, Mask(causal=True))
    for h in range(4):
        for i in range(20):
            powers = [math.exp(encoding.table[h, bucket(i - j, causal=True)].item()) for j in range(i + 1)]
            assert weights[0, h, i, : i + 1].tolist() == pytest.approx([one / sum(powers) for one in powers], abs=1e-12)


@pytest.mark.parametrize("backend", [Eager(), Sdpa()], ids=["eager", "sdpa"])
def test_the_gradient_through_attention_is_that_of_plain_terms(backend: Backend) -> None:
    generator = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, 2, 4, 20, 4, generator=generator, dtype=torch.float64)
    weight, at = torch.randn(2, 4, 20, 4, generator=generator, dtype=torch.float64), torch.arange(20)
    encoding = t5(causal=True, buckets=8, max_distance=16).double()
    with torch.no_grad():
        encoding.table.copy_(torch.randn(4, 8, generator=generator))
    out = attend(encoding, backend, (q, k, v), At(q, at, at, uniform=True), Mask(causal=True))
    (got,) = torch.autograd.grad((out * weight).sum(), [encoding.table])
    expected = torch.zeros(4, 8, dtype=torch.float64)
    for b in range(2):
        for h in range(4):
            for i in range(20):
                places = [bucket(i - j, causal=True) for j in range(i + 1)]
                chances = torch.softmax(k[b, h, : i + 1] @ q[b, h, i] / 2 + encoding.table[h, places].detach(), dim=0)
                worth = v[b, h, : i + 1] @ weight[b, h, i]
                for j, place in enumerate(places):  # d softmax: p_j (worth_j - mean worth)
                    expected[h, place] += chances[j] * (worth[j] - chances @ worth)
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-10)


def test_all_layers_read_one_table_and_its_gradient_is_the_sum_over_them() -> None:
    made = build_layers("t5(buckets=8, max_distance=16)", Site(16, 4, 4, 4, 64, 64, layers=3, causal=True))
    q, at, first = torch.zeros(1, 4, 10, 4), torch.arange(10), made[0]
    assert isinstance(first, T5)
    assert all(one is first for one in made)
    for layer in made:
        bias = layer.bias(q, None, At(q, at, at, uniform=True))
        assert bias is not None
        bias.tile().sum().backward()
    assert first.table.grad is not None
    assert first.table.grad.sum().item() == 3 * 4 * 100


@pytest.mark.parametrize("options", ["buckets=1", "buckets=2", "max_distance=8"])
def test_buckets_that_cannot_be_laid_out_are_unsupported(options: str) -> None:
    """An encoder's side of 16 buckets has 8 exact ones, and coarse ones must lie beyond them."""
    with pytest.raises(Unsupported, match="t5"):
        build(f"t5({options})", Site(16, 4, 4, 4, 64, 64))


def test_the_last_bucket_starts_before_the_largest_distance() -> None:
    """113 of 128, by the log spacing: what a suite that states max_distance should know."""
    assert math.floor(16 * 8 ** (15 / 16)) + 1 == CAUSAL[-1]


@pytest.mark.parametrize("length", [48, 64, 96])
def test_half_is_half_the_training_length(length: int) -> None:
    site = Site(16, 4, 4, 4, length, 4 * length)
    half, number = (build(f"t5(max_distance={text})", site) for text in ("'half'", length // 2))
    distances = torch.arange(-2 * length, 2 * length)
    assert torch.equal(half.bucket(distances), number.bucket(distances))
    assert half.bucket(torch.arange(length // 2, length)).unique().numel() == 1
