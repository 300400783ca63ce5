"""What every backend promises, against attention one query at a time in float64.

Shapes: B batch, H heads, T queries, S keys, D head channels.
"""

import math
from functools import cache

import pytest
import torch
from by_hand import (
    FIXED,
    KINDS,
    MAKERS,
    D,
    H,
    attend,
    by_hand,
    draw,
    every,
    gradients,
    inputs,
    make_bias,
    padded,
)
from torch import Tensor

from grape_bench.backends import Mask, load
from grape_bench.bias import LowRank
from grape_bench.errors import Unsupported

GARBAGE = [math.inf, math.nan, 1e30]


@cache
def truth(kind: str, T: int, S: int, kv_heads: int, *masks: bool) -> list[Tensor]:
    """Outputs and all gradients by hand, once for all backends."""
    bias, own = make_bias(kind, T, S)
    qkv = [one.requires_grad_() for one in inputs(T, S, kv_heads)]
    out = by_hand(qkv, bias, mask(S, *masks))
    return [out.detach(), *gradients(out, [*qkv, *own])]


def mask(S: int, causal: bool, padding: bool, packed: bool = False) -> Mask:
    documents = torch.tensor([[0, 0, 0, 1, 1, 1, 1, 2, 2], [7, 7, 7, 7, 7, 7, 3, 3, 4]]) if packed else None
    return Mask(causal, padded(S) if padding else None, documents)


@every
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize(("T", "S", "kv_heads"), [(5, 5, 4), (3, 6, 2)])
def test_outputs_and_gradients_are_those_of_one_query_at_a_time(
    name: str, kind: str, causal: bool, padding: bool, T: int, S: int, kv_heads: int
) -> None:
    """T < S puts the queries at the end: a mask that is aligned top left would fail."""
    bias, own = make_bias(kind, T, S)
    qkv = [one.requires_grad_() for one in inputs(T, S, kv_heads)]
    out = attend(name, qkv, bias, mask(S, causal, padding))
    got = [out, *gradients(out, [*qkv, *own])]
    for one, other in zip(got, truth(kind, T, S, kv_heads, causal, padding), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


@every
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_what_stands_at_padding_leaves_no_trace(name: str, kind: str, dtype: torch.dtype) -> None:
    keys, (q, k, v) = padded(6), (one.to(dtype) for one in inputs(6, 6))
    results = []
    for filler in (0.0, *GARBAGE):
        bias, own = make_bias(kind, 6, 6)
        if bias is not None:
            own = [leaf.detach().to(dtype).requires_grad_() for leaf in own]
            bias = bias.with_leaves(own)
        dirty = [one.masked_fill(~keys[:, None, :, None], filler) for one in (k, v)]
        leaves = [one.detach().clone().requires_grad_() for one in (q, *dirty)]
        out = attend(name, leaves, bias, Mask(False, keys))
        results.append([out, *gradients(out, [*leaves, *own])])
    for result in results[1:]:
        for clean, dirty_one in zip(results[0], result, strict=True):
            assert dirty_one.isfinite().all()
            torch.testing.assert_close(dirty_one, clean, rtol=0, atol=0)
        for gradient in result[2:4]:
            assert not gradient.masked_select(~keys[:, None, :, None].expand_as(gradient)).any()


@every
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_a_row_with_no_visible_key_is_zero(name: str, kind: str, dtype: torch.dtype) -> None:
    """Left padding in a decoder, and a sequence that is all padding."""
    keys = torch.tensor([[False, False, True, True, True], [False] * 5])
    wide = torch.promote_types(dtype, torch.float32)
    bias, own = make_bias(kind, 5, 5)
    if bias is not None:
        own = [leaf.detach().to(wide).requires_grad_() for leaf in own]
        bias = bias.with_leaves(own)
    qkv = [one.to(dtype).requires_grad_() for one in inputs(5, 5)]
    out = attend(name, qkv, bias, Mask(True, keys))
    assert not out[0, :, :2].any()
    assert not out[1].any()
    assert out[0, :, 2:].abs().min() > 0
    for gradient in gradients(out, [*qkv, *own]):
        assert gradient.isfinite().all()


@every
def test_the_bias_is_added_after_the_scale_and_not_scaled(name: str) -> None:
    """T5 biases that are multiplied by 1 / sqrt(D) are another model."""
    bias = LowRank(draw(1, 1, H, 5, 1), draw(2, 1, 1, 5, 1))
    qkv = inputs(5, 5)
    got = attend(name, qkv, bias, Mask(), scale=0.125)
    expected = by_hand(qkv, bias, Mask(), scale=0.125)
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-12)
    scaled = LowRank(bias.u / math.sqrt(D), bias.v)
    assert (expected - by_hand(qkv, scaled, Mask(), scale=0.125)).abs().max() > 1e-2


@every
def test_the_scale_is_one_over_the_root_of_the_head_by_default(name: str) -> None:
    qkv = inputs(4, 4)
    default, stated = (attend(name, qkv, None, Mask(), scale=scale) for scale in (None, 0.5))
    torch.testing.assert_close(default, stated, rtol=0, atol=0)


@every
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "gathered"])  # positions other than the places
def test_a_causal_row_sees_nothing_of_later_keys(name: str, kind: str) -> None:
    (q, k, v), (bias, _) = inputs(6, 6), make_bias(kind, 6, 6)
    before = attend(name, (q, k, v), bias, Mask(causal=True))
    k, v = k.clone(), v.clone()
    k[:, :, 4:], v[:, :, 4:] = 1e3, -1e3
    after = attend(name, (q, k, v), bias, Mask(causal=True))
    torch.testing.assert_close(after[:, :, :4], before[:, :, :4], rtol=0, atol=1e-12)


def test_visible_keys_are_aligned_at_the_bottom_right() -> None:
    device = torch.device("cpu")
    assert Mask(causal=True).visible(1, 5, device) is None
    assert Mask().visible(3, 3, device) is None
    got = Mask(causal=True).visible(2, 4, device)
    assert got is not None
    assert got.tolist() == [[True, True, True, False], [True, True, True, True]]


def test_sdpa_says_that_it_cannot_show_scores() -> None:
    bias, _ = make_bias("reading", 4, 4)
    with pytest.raises(Unsupported, match="scores"):
        load("sdpa").attend(*inputs(4, 4), bias, Mask())  # type: ignore[arg-type]


@every
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("T", "causal", "padding"), [(1, True, False), (5, True, True), (9, True, False), (9, False, True)]
)
def test_documents_packed_into_one_sequence_see_themselves_alone(
    name: str, kind: str, T: int, causal: bool, padding: bool
) -> None:
    """With fewer queries than keys, as behind a cache, a document may begin before the first query."""
    S = 9
    bias, own = (MAKERS[kind](T, S), []) if kind in FIXED else make_bias(kind, T, S)
    qkv = [one.requires_grad_() for one in inputs(T, S, 2)]
    out = attend(name, qkv, bias, mask(S, causal, padding, True))
    got = [out, *gradients(out, [*qkv, *own])]
    for one, other in zip(got, truth(kind, T, S, 2, causal, padding, True), strict=kind not in FIXED):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)
