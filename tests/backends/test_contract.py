"""What every backend promises, against attention one query at a time in float64.

Shapes: B batch, H heads, T queries, S keys, D head channels.
"""

import math
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from grape_bench.backends import Backend, Mask
from grape_bench.bias import Bias, LowRank, Rowwise, Sum, Toeplitz
from grape_bench.errors import Unsupported
from grape_bench.registry import Registry

BACKENDS = list(Registry("backends"))
B, H, D = 2, 4, 4
HALF = {torch.float16: 4e-3, torch.bfloat16: 3e-2}
GARBAGE = [math.inf, math.nan, 1e30]

every = pytest.mark.parametrize("name", BACKENDS)


def backend(name: str) -> Backend:
    made = Registry("backends")[name].load()()
    assert isinstance(made, Backend)
    return made


def draw(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def attend(name: str, qkv: Sequence[Tensor], bias: Bias | None, mask: Mask, scale: float | None = None) -> Tensor:
    """A backend that cannot do it must say so, which is a skip here as well."""
    try:
        return backend(name).attend(*qkv, bias, mask, scale=scale)
    except Unsupported as reason:
        pytest.skip(str(reason))


def table_kernel(distance: Tensor, table: Tensor) -> Tensor:
    return table[:, distance.clamp(-3, 3) + 3]


def squares(rows: slice, scores: Tensor | None, gains: Tensor) -> Tensor:
    assert scores is not None
    return gains[:, None, None] * scores**2


def toeplitz(T: int, S: int) -> Bias:
    return Toeplitz(table_kernel, [draw(11, H, 7)], torch.arange(S - T, S), torch.arange(S), uniform=True)


def gathered(T: int, S: int) -> Bias:
    at = torch.stack((torch.arange(S), 2 * torch.arange(S)))
    return Toeplitz(table_kernel, [draw(11, H, 7)], at[:, S - T :], at, uniform=False)


def low_rank(T: int, S: int) -> Bias:
    return LowRank(draw(12, 1, H, T, 3), draw(13, 1, 2, S, 3), draw(14, 1, H, T, 1))


def product(rows: slice, scores: Tensor | None, left: Tensor, right: Tensor) -> Tensor:
    return (left[:, rows, None] * right[:, None, :].tanh())[None]


def rowwise(T: int, S: int) -> Bias:
    return Rowwise(product, [draw(15, H, T), draw(16, H, S)])


def reading(T: int, S: int) -> Bias:
    return Rowwise(squares, [draw(17, H)], reads_scores=True)


def total(T: int, S: int) -> Bias:
    return Sum([toeplitz(T, S), low_rank(T, S), rowwise(T, S)])


MAKERS = {maker.__name__: maker for maker in (toeplitz, gathered, low_rank, rowwise, reading, total)}
KINDS = ["nothing", *MAKERS]


def inputs(T: int, S: int, kv_heads: int = H) -> list[Tensor]:
    return [draw(1, B, H, T, D), draw(2, B, kv_heads, S, D), draw(3, B, kv_heads, S, D)]


def make_bias(kind: str, T: int, S: int) -> tuple[Bias | None, list[Tensor]]:
    """A bias made of leaves that take gradients."""
    if kind == "nothing":
        return None, []
    made = MAKERS[kind](T, S)
    leaves = [leaf.detach().clone().requires_grad_() for leaf in made.leaves()]
    return made.with_leaves(leaves), leaves


def by_hand(
    qkv: Sequence[Tensor], bias: Bias | None, *, causal: bool, keys: Tensor | None, scale: float | None = None
) -> Tensor:
    """Each query alone: scores of the keys it sees, in the order score, scale, bias, mask, softmax."""
    q, k, v = qkv
    T, S = q.shape[2], k.shape[2]
    scale = 1 / math.sqrt(q.shape[3]) if scale is None else scale
    outs = []
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            group = h * k.shape[1] // q.shape[1]
            whole = torch.stack([(k[b, group] * q[b, h, i]).sum(dim=-1) * scale for i in range(T)])
            added = None
            if bias is not None:
                every = torch.zeros(q.shape[0], q.shape[1], T, S, dtype=q.dtype)
                every[b, h] = whole
                tile = bias.tile(scores=every if bias.reads_scores else None)
                added = tile[min(b, len(tile) - 1), h]
            for i in range(T):
                seen = [j for j in range(S) if (not causal or j <= i + S - T) and (keys is None or bool(keys[b, j]))]
                if not seen:
                    outs.append(torch.zeros_like(q[b, h, i]))
                    continue
                row = whole[i, seen] if added is None else whole[i, seen] + added[i, seen]
                weights = (row - row.max().detach()).exp()
                outs.append((weights[:, None] * v[b, group, seen]).sum(dim=0) / weights.sum())
    return torch.stack(outs).reshape(q.shape)


def padded(S: int) -> Tensor:
    keys = torch.ones(B, S, dtype=torch.bool)
    keys[0, :2], keys[1, -1] = False, False
    return keys


def gradients(out: Tensor, leaves: list[Tensor]) -> list[Tensor]:
    direction = draw(21, *out.shape).to(out.dtype)
    return list(torch.autograd.grad(out, leaves, direction, materialize_grads=True))


@every
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize(("T", "S", "kv_heads"), [(5, 5, 4), (3, 6, 2)])
def test_outputs_and_gradients_are_those_of_one_query_at_a_time(
    name: str, kind: str, causal: bool, padding: bool, T: int, S: int, kv_heads: int
) -> None:
    """T < S puts the queries at the end: a mask that is aligned top left would fail."""
    keys = padded(S) if padding else None
    bias, own = make_bias(kind, T, S)
    qkv = [one.requires_grad_() for one in inputs(T, S, kv_heads)]
    out = attend(name, qkv, bias, Mask(causal, keys))
    got = [out, *gradients(out, [*qkv, *own])]
    exact = by_hand(qkv, bias, causal=causal, keys=keys)
    for one, other in zip(got, [exact, *gradients(exact, [*qkv, *own])], strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


@every
@pytest.mark.parametrize("kind", ["nothing", "toeplitz", "low_rank"])
@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("learned", [False, True])
def test_half_precision_is_within_its_tolerance(
    name: str, kind: str, dtype: torch.dtype, padding: bool, learned: bool
) -> None:
    keys = padded(7) if padding else None
    qkv = [one.to(dtype) for one in inputs(7, 7)]
    bias, own = make_bias(kind, 7, 7)
    if bias is not None:
        bias = bias.with_leaves([leaf.detach().float().requires_grad_(learned) for leaf in own])
    out = attend(name, qkv, bias, Mask(True, keys))
    assert out.dtype == dtype
    exact_bias = None if bias is None else bias.with_leaves([leaf.detach().double() for leaf in bias.leaves()])
    exact = by_hand([one.double() for one in qkv], exact_bias, causal=True, keys=keys)
    torch.testing.assert_close(out.detach().double(), exact, rtol=0, atol=HALF[dtype])


@every
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("garbage", GARBAGE)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_what_stands_at_padding_leaves_no_trace(name: str, kind: str, garbage: float, dtype: torch.dtype) -> None:
    keys, (q, k, v) = padded(6), (one.to(dtype) for one in inputs(6, 6))
    results = []
    for filler in (0.0, garbage):
        bias, own = make_bias(kind, 6, 6)
        if bias is not None:
            own = [leaf.detach().to(dtype).requires_grad_() for leaf in own]
            bias = bias.with_leaves(own)
        dirty = [one.masked_fill(~keys[:, None, :, None], filler) for one in (k, v)]
        leaves = [one.detach().clone().requires_grad_() for one in (q, *dirty)]
        out = attend(name, leaves, bias, Mask(False, keys))
        results.append([out, *gradients(out, [*leaves, *own])])
    for clean, dirty_one in zip(*results, strict=True):
        assert dirty_one.isfinite().all()
        torch.testing.assert_close(dirty_one, clean, rtol=0, atol=0)
    for gradient in results[1][2:4]:
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
    expected = by_hand(qkv, bias, causal=False, keys=None, scale=0.125)
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-12)
    scaled = LowRank(bias.u / math.sqrt(D), bias.v)
    assert (expected - by_hand(qkv, scaled, causal=False, keys=None, scale=0.125)).abs().max() > 1e-2


@every
def test_the_scale_is_one_over_the_root_of_the_head_by_default(name: str) -> None:
    qkv = inputs(4, 4)
    default, stated = (attend(name, qkv, None, Mask(), scale=scale) for scale in (None, 0.5))
    torch.testing.assert_close(default, stated, rtol=0, atol=0)


@every
@pytest.mark.parametrize("kind", ["nothing", *MAKERS])
def test_a_causal_row_sees_nothing_of_later_keys(name: str, kind: str) -> None:
    if kind == "gathered":
        pytest.skip("its positions are not those of the places")
    (q, k, v), (bias, _) = inputs(6, 6), make_bias(kind, 6, 6)
    before = attend(name, (q, k, v), bias, Mask(causal=True))
    k, v = k.clone(), v.clone()
    k[:, :, 4:], v[:, :, 4:] = 1e3, -1e3
    after = attend(name, (q, k, v), bias, Mask(causal=True))
    torch.testing.assert_close(after[:, :, :4], before[:, :, :4], rtol=0, atol=1e-12)


@every
@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("kind", ["toeplitz", "low_rank", "total"])
def test_no_bias_is_expanded_over_the_batch(
    name: str, kind: str, padding: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One matrix of T x S a head serves all sequences, also beside padding."""
    masks: list[Tensor] = []
    real = F.scaled_dot_product_attention

    def spy(*args: Tensor, attn_mask: Tensor | None = None, **options: object) -> Tensor:
        if attn_mask is not None:
            masks.append(attn_mask)
        return real(*args, attn_mask=attn_mask, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(F, "scaled_dot_product_attention", spy)
    tiles: list[Tensor] = []
    bias, _ = make_bias(kind, 6, 6)
    assert bias is not None
    tile = bias.tile

    def watched(*args: object, **options: object) -> Tensor:
        tiles.append(tile(*args, **options))  # type: ignore[arg-type]
        return tiles[-1]

    monkeypatch.setattr(bias, "tile", watched)
    attend(name, inputs(6, 6), bias, Mask(True, padded(6) if padding else None))
    assert all(one.shape[0] == 1 for one in masks + tiles)
    assert tiles or masks or name not in ("eager", "sdpa")


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
        backend("sdpa").attend(*inputs(4, 4), bias, Mask())  # type: ignore[arg-type]
