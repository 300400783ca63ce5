"""Chunked: blocks of two rows give what eager gives in float64, whatever the bias is made of.

Shapes: B batch, H heads, T queries, S keys, D head channels.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from by_hand import Largest
from torch import Tensor

from grape_bench.backends import Mask, chunked, load, noting
from grape_bench.bias import Bias, LowRank, Rowwise, Sum, Toeplitz
from grape_bench.cell import CostCell
from grape_bench.encodings import Encoding
from grape_bench.errors import Unsupported
from grape_bench.operation import AttentionOperation
from grape_bench.registry import Plugin, Registry

B, H, T, S, D = 2, 4, 5, 7, 3
BIASES = [plugin for plugin in Registry("encodings").values() if plugin.load().bias is not Encoding.bias]


@pytest.fixture
def blocks_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunked, "_BUDGET_MIB", 0.0)
    monkeypatch.setattr(chunked, "_FEWEST_ROWS", 2)


def draw(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def kernel(distance: Tensor, table: Tensor) -> Tensor:
    return table[:, distance.clamp(-3, 3) + 3] * distance


def toeplitz() -> Bias:
    return Toeplitz(kernel, [draw(1, H, 7)], torch.arange(S - T, S), torch.arange(S), uniform=True)


def batched() -> Bias:
    at = torch.stack((torch.arange(S), torch.arange(S).flip(0)))
    return Toeplitz(kernel, [draw(1, H, 7)], at[:, S - T :], at, uniform=False)


def low_rank() -> Bias:
    return LowRank(draw(2, B, H, T, 2), draw(3, 1, 2, S, 2), draw(4, 1, H, T, 1))


def rows_of_a_table() -> Bias:
    """Its tile is a view of the leaf: a block that wrote into it would spoil the next."""
    return Rowwise(lambda rows, scores, table: table[:, :, rows], [draw(5, 1, H, T, S)])


def counting() -> Bias:
    """What each query counts on its way back from the last key, so all columns of a row matter."""

    def count(rows: slice, scores: Tensor | None, gains: Tensor) -> Tensor:
        assert scores is not None
        return gains[:, None, None] * scores.sigmoid().flip(-1).cumsum(dim=-1).flip(-1)

    return Rowwise(count, [draw(6, H)], reads_scores=True)


def total() -> Bias:
    return Sum([toeplitz(), low_rank(), counting(), toeplitz()])


KINDS: dict[str, Callable[[], Bias] | None] = {"nothing": None} | {
    maker.__name__: maker for maker in (toeplitz, batched, low_rank, rows_of_a_table, counting, total)
}
MASKS = {
    "all": Mask(),
    "causal": Mask(causal=True),
    "padded": Mask(causal=True, keys=torch.tensor([[False] * 4 + [True] * 3, [True] * 6 + [False]])),
    "documents": Mask(documents=torch.tensor([[0, 0, 0, 1, 1, 2, 2], [5, 5, 5, 5, 3, 3, 3]])),
}
MASKS["all of them"] = replace(MASKS["padded"], documents=MASKS["documents"].documents)


def inputs(kind: str, kv_heads: int = 2, learned: bool = True) -> tuple[list[Tensor], Bias | None, list[Tensor]]:
    """q, k, v, and a bias of leaves that take gradients."""
    qkv = [draw(7 + n, B, heads, rows, D) for n, (heads, rows) in enumerate(((H, T), (kv_heads, S), (kv_heads, S)))]
    maker = KINDS[kind]
    if maker is None:
        return [one.requires_grad_() for one in qkv], None, []
    leaves = [leaf.requires_grad_(learned) for leaf in maker().leaves()]
    return [one.requires_grad_() for one in qkv], maker().with_leaves(leaves), leaves


def outputs_and_gradients(name: str, qkv: list[Tensor], bias: Bias | None, mask: Mask, own: list[Tensor]) -> Any:
    out = load(name).attend(*qkv, bias, mask)
    return [out, *torch.autograd.grad(out, [*qkv, *own], draw(11, *out.shape).to(out), materialize_grads=True)]


@pytest.mark.usefixtures("blocks_of_two")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_blocks_give_what_the_whole_gives(kind: str, mask: str, kv_heads: int) -> None:
    if kind in ("low_rank", "total") and kv_heads == 1:
        kv_heads = 2
    qkv, bias, own = inputs(kind, kv_heads)
    got, exact = (outputs_and_gradients(name, qkv, bias, MASKS[mask], own) for name in ("chunked", "eager"))
    for one, other in zip(got, exact, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@pytest.mark.usefixtures("blocks_of_two")
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_finite_differences(kind: str) -> None:
    qkv, bias, own = inputs(kind)

    def attend(q: Tensor, k: Tensor, v: Tensor, *leaves: Tensor) -> Tensor:
        return load("chunked").attend(q, k, v, bias.with_leaves(leaves) if bias else None, MASKS["padded"])

    assert torch.autograd.gradcheck(attend, (*qkv, *own), fast_mode=True)


@pytest.mark.usefixtures("blocks_of_two")
@pytest.mark.parametrize("plugin", BIASES, ids=lambda plugin: plugin.name)
@pytest.mark.parametrize("causal", [True, False])
def test_every_bias_of_the_folder_can_be_cut_into_blocks(plugin: Plugin, causal: bool) -> None:
    encoding = f"{plugin.name}({plugin.facts['around']})" if plugin.wraps else plugin.name
    cell = CostCell(metric="forward_ms", encoding=encoding, length=9, heads=4, kv_heads=2, head_dim=8, causal=causal)
    try:
        op = AttentionOperation.of(cell, "cpu", batch=2)
    except Unsupported as reason:
        pytest.skip(str(reason))
    q, k, v = (one.double() for one in op.qkv)
    found = []
    for name in ("chunked", "eager"):
        one = replace(op, encoding=op.encoding.double(), backend=load(name), qkv=(q, k, v), x=op.x.double())
        leaves = one.leaves()
        out = one.forward()
        found.append([out, *one.gradients(out, leaves)])
    for got, exact in zip(*found, strict=True):
        torch.testing.assert_close(got, exact, rtol=0, atol=1e-10)


class Watched(Toeplitz):
    """Keeps which tiles were asked for."""

    asked: list[tuple[slice, slice]]

    def tile(self, rows: slice = slice(None), cols: slice = slice(None), scores: Tensor | None = None) -> Tensor:
        self.asked.append((rows, cols))
        return super().tile(rows, cols, scores)


@pytest.mark.usefixtures("blocks_of_two")
@pytest.mark.parametrize("grads", [False, True])
def test_a_causal_block_ends_at_its_last_query(grads: bool) -> None:
    (q, k, v), _, _ = inputs("nothing")
    bias = Watched(kernel, [draw(1, H, 7)], torch.arange(S - T, S), torch.arange(S), uniform=True)
    Watched.asked = []
    out = load("chunked").attend(q, k, v, bias, Mask(causal=True))
    expected = [(slice(0, 2), slice(0, 4)), (slice(2, 4), slice(0, 6)), (slice(4, 5), slice(0, 7))]
    if grads:
        out.sum().backward()
    assert Watched.asked == expected * (1 + grads)


def test_nothing_is_larger_than_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gradient of the table included; H x T x T numbers would be 16 times the budget."""
    monkeypatch.setattr(chunked, "_BUDGET_MIB", 0.25)
    n = 512
    table = draw(1, H, 7).float().requires_grad_()
    bias = Toeplitz(kernel, [table], torch.arange(n), torch.arange(n), uniform=True)
    qkv = [draw(seed, 1, H, n, 8).float().requires_grad_() for seed in range(3)]
    with Largest() as largest:
        load("chunked").attend(*qkv, bias, Mask(causal=True)).sum().backward()
    assert table.grad is not None
    assert largest.size <= 2**18


def test_half_precision_is_computed_in_float32_and_says_so() -> None:
    qkv, bias, own = inputs("total")
    assert bias is not None
    leaves = [leaf.detach().float().requires_grad_() for leaf in own]
    half = [one.detach().bfloat16().requires_grad_() for one in qkv]
    wide = [one.detach().float().requires_grad_() for one in half]
    with noting() as notes:
        got = outputs_and_gradients("chunked", half, bias.with_leaves(leaves), Mask(), leaves)
    exact = outputs_and_gradients("chunked", wide, bias.with_leaves(leaves), Mask(), leaves)
    assert notes == ["float32 inside"]
    torch.testing.assert_close(got[0], exact[0].bfloat16(), rtol=0, atol=0)
    assert [one.dtype for one in got[1:4]] == [torch.bfloat16] * 3
    for one, other in zip(got[1:], exact[1:], strict=True):  # their outputs' gradients differ by a rounding
        torch.testing.assert_close(one.float(), other, rtol=0, atol=2e-2 * other.abs().max().item() + 1e-6)


@pytest.mark.usefixtures("blocks_of_two")
def test_autocast_rounds_nothing() -> None:
    qkv, bias, own = inputs("total")
    assert bias is not None
    leaves = [leaf.detach().float().requires_grad_() for leaf in own]
    wide = [one.detach().float().requires_grad_() for one in qkv]
    plain = outputs_and_gradients("chunked", wide, bias.with_leaves(leaves), Mask(), leaves)
    with torch.autocast("cpu", torch.bfloat16):
        cast = outputs_and_gradients("chunked", wide, bias.with_leaves(leaves), Mask(), leaves)
    for one, other in zip(cast, plain, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


@pytest.mark.usefixtures("blocks_of_two")
def test_inputs_may_lie_in_memory_token_by_token() -> None:
    qkv, bias, own = inputs("total")
    turned = [one.detach().transpose(1, 2).contiguous().transpose(1, 2).requires_grad_() for one in qkv]
    for one, other in zip(
        outputs_and_gradients("chunked", turned, bias, Mask(causal=True), own),
        outputs_and_gradients("chunked", qkv, bias, Mask(causal=True), own),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-14)


@pytest.mark.usefixtures("blocks_of_two")
def test_a_leaf_that_asks_for_no_gradient_costs_none() -> None:
    qkv, bias, own = inputs("low_rank", learned=False)
    own[1].requires_grad_()
    assert bias is not None
    out = load("chunked").attend(*qkv, bias.with_leaves(own), Mask())
    found = torch.autograd.grad(out.sum(), own[1])[0]
    assert found.abs().min() > 0
    assert own[0].grad is None


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
