"""What every backend promises, against attention one query at a time in float64.

Shapes: B batch, H heads, T queries, S keys, D head channels.
"""

import math
import os
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from grape_bench.backends import Backend, Mask
from grape_bench.bias import Bias, LowRank, Rowwise, Sum, Toeplitz
from grape_bench.errors import Unsupported
from grape_bench.registry import Registry

# It compiles for seconds at every shape: `tox -e flex` runs it.
COMPILED = pytest.mark.skipif("GRAPE_BENCH_FLEX" not in os.environ, reason="compiled, so tox -e flex runs it")
OUTSIDE = {"flash_alibi", "fla_fox"}  # for a GPU alone, which is not asked for here
NAMES = [name for name in Registry("backends") if name not in OUTSIDE]
BACKENDS = [pytest.param(name, marks=COMPILED if name == "flex" else ()) for name in NAMES]
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


def growing(T: int, S: int) -> Bias:
    """Slopes times positions, of which only every second is even."""
    slopes, at = torch.tensor([0.5, 0.07, 0.011, 0.0037]).double()[:, None, None], torch.arange(S).double()[:, None]
    return LowRank(slopes.expand(H, T, 1)[None], (at - S // 2)[None, None], -slopes * at[None, S - T :])


def gates(T: int, S: int) -> Bias:
    """A running sum of gates that each key head has, as forgetting attention."""
    total = F.logsigmoid(draw(18, B, 2, S, 1)).cumsum(dim=2)
    return LowRank(torch.ones(1, H, T, 1).double(), -total, total.repeat_interleave(2, dim=1)[:, :, S - T :])


def window(T: int, S: int) -> Bias:
    return Toeplitz(walled, [draw(19, H)], torch.arange(S - T, S), torch.arange(S), uniform=True)


def walled(distance: Tensor, level: Tensor) -> Tensor:
    whole = level.reshape(-1, *[1] * distance.dim()).expand(-1, *distance.shape)
    return whole.masked_fill(distance.abs() >= 4, float("-inf"))


def rowwise(T: int, S: int) -> Bias:
    return Rowwise(product, [draw(15, H, T), draw(16, H, S)])


def reading(T: int, S: int) -> Bias:
    return Rowwise(squares, [draw(17, H)], reads_scores=True)


def total(T: int, S: int) -> Bias:
    return Sum([toeplitz(T, S), low_rank(T, S), rowwise(T, S)])


def liftable(T: int, S: int) -> Bias:
    return Sum([low_rank(T, S), Sum([window(T, S), growing(T, S)])])


MAKERS: dict[str, Callable[[int, int], Bias]] = {
    maker.__name__: maker
    for maker in (toeplitz, gathered, window, low_rank, growing, gates, rowwise, reading, liftable, total)
}
KINDS = ["nothing", *MAKERS]
FIXED = {"toeplitz", "window", "liftable"}  # where nothing learns, there is another way


def inputs(T: int, S: int, kv_heads: int = H) -> list[Tensor]:
    return [draw(1, B, H, T, D), draw(2, B, kv_heads, S, D), draw(3, B, kv_heads, S, D)]


def make_bias(kind: str, T: int, S: int) -> tuple[Bias | None, list[Tensor]]:
    """A bias made of leaves that take gradients."""
    if kind == "nothing":
        return None, []
    made = MAKERS[kind](T, S)
    leaves = [leaf.detach().clone().requires_grad_() for leaf in made.leaves()]
    return made.with_leaves(leaves), leaves


def by_hand(qkv: Sequence[Tensor], bias: Bias | None, mask: Mask, scale: float | None = None) -> Tensor:
    """Each query alone: scores of the keys it sees, in the order score, scale, bias, mask, softmax."""
    q, k, v = qkv
    T, S = q.shape[2], k.shape[2]
    scale = 1 / math.sqrt(q.shape[3]) if scale is None else scale
    outs, tile = [], None if bias is None or bias.reads_scores else bias.tile()
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            group = h * k.shape[1] // q.shape[1]
            whole = torch.stack([(k[b, group] * q[b, h, i]).sum(dim=-1) * scale for i in range(T)])
            if bias is not None and bias.reads_scores:
                every = torch.zeros(q.shape[0], q.shape[1], T, S, dtype=q.dtype)
                every[b, h] = whole
                tile = bias.tile(scores=every)
            added = None if tile is None else tile[min(b, len(tile) - 1), h]
            for i in range(T):
                seen = [j for j in range(S) if sees(mask, b, i + S - T, j)]
                row = whole[i, seen] if added is None else whole[i, seen] + added[i, seen]
                if not row.isfinite().any():
                    outs.append(torch.zeros_like(q[b, h, i]))
                    continue
                weights = (row - row.max().detach()).exp()
                outs.append((weights[:, None] * v[b, group, seen]).sum(dim=0) / weights.sum())
    return torch.stack(outs).reshape(q.shape)


def sees(mask: Mask, b: int, i: int, j: int) -> bool:
    """Whether the query at place i of the keys sees key j."""
    known = mask.keys is None or bool(mask.keys[b, j])
    own = mask.documents is None or bool(mask.documents[b, i] == mask.documents[b, j])
    return known and own and (not mask.causal or j <= i)


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
    bias, own = make_bias(kind, T, S)
    qkv = [one.requires_grad_() for one in inputs(T, S, kv_heads)]
    out = attend(name, qkv, bias, mask(S, causal, padding))
    got = [out, *gradients(out, [*qkv, *own])]
    for one, other in zip(got, truth(kind, T, S, kv_heads, causal, padding), strict=True):
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
    exact = by_hand([one.double() for one in qkv], exact_bias, Mask(True, keys))
    torch.testing.assert_close(out.detach().double(), exact, rtol=0, atol=HALF[dtype])


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


# Errors relative to the largest number of the exact tensor: of outputs, and the worst of all gradients.
ALLOWED = {torch.float32: (1e-5, 1e-4), torch.bfloat16: (5e-3, 2e-2)}
STEPWISE = (3e-2, 6e-2)  # eager in bfloat16 rounds the scores as well
LONG = 101


@every
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("work", ["forward", "backward", "learning", "decode"])
@pytest.mark.parametrize("dtype", ALLOWED)
def test_errors_are_within_the_table(
    name: str, kind: str, work: str, dtype: torch.dtype, record_property: Callable[[str, object], None]
) -> None:
    """`backward` holds the bias fixed, `learning` takes gradients of all that it is made of."""
    got, exact = worked(name, kind, work, dtype), oracle(kind, work, dtype)
    errors = [error(one, other) for one, other in zip(got, exact, strict=True)]
    shown = (name, kind, work, str(dtype).removeprefix("torch."))
    record_property("errors", (*shown, errors[0], max(errors[1:], default=0.0)))
    output, gradient = STEPWISE if name == "eager" and dtype == torch.bfloat16 else ALLOWED[dtype]
    assert errors[0] <= output
    assert max(errors[1:], default=0.0) <= gradient


@cache
def oracle(kind: str, work: str, dtype: torch.dtype) -> list[Tensor]:
    """The same in float64, of inputs that were rounded to the number format."""
    return worked("eager", kind, work, dtype, exactly=True)


def worked(name: str, kind: str, work: str, dtype: torch.dtype, *, exactly: bool = False) -> list[Tensor]:
    """Outputs, and the gradients that the work takes."""
    T, grads, learning = 1 if work == "decode" else LONG, work in ("backward", "learning"), work == "learning"
    made = MAKERS[kind](T, LONG) if kind != "nothing" else None
    wide = torch.float64 if exactly else torch.float32
    own = [leaf.float().to(wide).requires_grad_(learning) for leaf in made.leaves()] if made else []
    qkv = [one.to(dtype).to(wide if exactly else dtype).requires_grad_(grads) for one in inputs(T, LONG, 2)]
    with torch.set_grad_enabled(grads):
        out = attend(name, qkv, made.with_leaves(own) if made else None, Mask(causal=True))
    return [out.detach(), *(gradients(out, qkv + own * learning) if grads else [])]


def error(given: Tensor, exact: Tensor) -> float:
    """Relative to the largest number, or absolute where there is none: softmax does not see a row's constant."""
    largest = exact.abs().max().item()
    return (given.double() - exact).abs().max().item() / (largest if largest > 1e-9 else 1.0)


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


class Largest(TorchDispatchMode):
    """The most numbers that any tensor made within has in memory."""

    numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for one in out if isinstance(out, tuple | list) else [out]:
            if isinstance(one, Tensor):
                self.numbers = max(self.numbers, one.untyped_storage().nbytes() // one.itemsize)
        return out


@every
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("learning", [False, True])
def test_no_backend_but_two_holds_a_whole_matrix(name: str, kind: str, learning: bool) -> None:
    """Not in one tensor, forward or backward; sdpa and eager do, or this test would see nothing."""
    if name in ("eager", "sdpa") and (learning or kind not in ("nothing", "low_rank")):
        pytest.skip("once is enough")
    if name not in ("eager", "sdpa") and not learning and kind not in FIXED:
        pytest.skip("what learns takes the same way, and more")
    T = 1024
    made = MAKERS[kind](T, T) if kind != "nothing" else None
    own = [leaf.float().requires_grad_(learning) for leaf in made.leaves()] if made else []
    bias = made.with_leaves(own) if made else None
    qkv = [one.float().requires_grad_() for one in inputs(T, T, 2)]
    with Largest() as largest:
        out = attend(name, qkv, bias, Mask(causal=True))
        torch.autograd.grad(out, [*qkv, *own * learning], torch.ones_like(out), materialize_grads=True)
    if name == "eager" or (name == "sdpa" and kind != "nothing"):
        assert largest.numbers >= H * T * T
    else:
        assert largest.numbers < H * T * T / 2
