"""The algebra of biases, against loops over single numbers in float64.

Shapes: H heads, T queries, S keys, r channels of a lift.
"""

import math
from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from grape_bench.bias import Bias, LowRank, Rowwise, Sum, Toeplitz

BATCH, HEADS, KV_HEADS, RANK = 2, 4, 2, 3
sizes = st.integers(1, 6)
seeds = st.integers(0, 2**16)


def draw(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def kernel(distance: Tensor, table: Tensor) -> Tensor:
    """k_h(d) = a_h sin(0.3 d) + c_h d: neither even nor odd in its use, and defined for reals."""
    a, c = (column.reshape(-1, *[1] * distance.dim()) for column in table.unbind(1))
    return a * torch.sin(0.3 * distance.double()) + c * distance.double()


def growing(rows: slice, scores: Tensor | None, gains: Tensor, keys: Tensor, steps: Tensor) -> Tensor:
    """g_h step_i sqrt(1 + key_j^2), a block of whole rows."""
    steps = steps[rows]
    return (gains[:, None, None] * steps[:, None] * (1 + keys**2).sqrt()[None, None])[None]


def squares(rows: slice, scores: Tensor | None, gains: Tensor) -> Tensor:
    assert scores is not None
    return gains[:, None, None] * scores**2


def uniform(T: int, S: int, seed: int) -> Bias:
    q, k = torch.arange(S - T, S) + seed % 50, torch.arange(S) + seed % 50
    return Toeplitz(kernel, [draw(seed, HEADS, 2)], q, k, uniform=True)


def gathered(T: int, S: int, seed: int) -> Bias:
    q, k = (draw(seed + one, n).mul(9).round().long() for one, n in ((1, T), (2, S)))
    return Toeplitz(kernel, [draw(seed, HEADS, 2)], q, k, uniform=False)


def batched(T: int, S: int, seed: int) -> Bias:
    q, k = (draw(seed + one, BATCH, n).mul(9).round().long() for one, n in ((1, T), (2, S)))
    return Toeplitz(kernel, [draw(seed, HEADS, 2)], q, k, uniform=False)


def timestamps(T: int, S: int, seed: int) -> Bias:
    q, k = draw(seed + 1, T).mul(9), draw(seed + 2, S).mul(9)
    return Toeplitz(kernel, [draw(seed, HEADS, 2)], q, k, uniform=False)


def low_rank(T: int, S: int, seed: int) -> Bias:
    row = draw(seed + 2, 1, HEADS, T, 1)
    return LowRank(draw(seed, 1, HEADS, T, RANK), draw(seed + 1, 1, 1, S, RANK), row)


def low_rank_of_groups(T: int, S: int, seed: int) -> Bias:
    return LowRank(draw(seed, BATCH, HEADS, T, RANK), draw(seed + 1, BATCH, KV_HEADS, S, RANK))


def rowwise(T: int, S: int, seed: int) -> Bias:
    return Rowwise(growing, [draw(seed, HEADS), draw(seed + 1, S), draw(seed + 2, T)])


def reading(T: int, S: int, seed: int) -> Bias:
    return Rowwise(squares, [draw(seed, HEADS)], reads_scores=True)


def total(T: int, S: int, seed: int) -> Bias:
    return Sum([uniform(T, S, seed), Sum([low_rank(T, S, seed + 5), rowwise(T, S, seed + 9)]), batched(T, S, seed + 3)])


MAKERS = {
    maker.__name__: maker
    for maker in (uniform, gathered, batched, timestamps, low_rank, low_rank_of_groups, rowwise, reading, total)
}
kinds = st.sampled_from(sorted(MAKERS))


def tile(bias: Bias, seed: int, T: int, S: int, rows: slice = slice(None), cols: slice = slice(None)) -> Tensor:
    scores = draw(seed + 7, BATCH, HEADS, T, S)[..., rows, :] if bias.reads_scores else None
    return bias.tile(rows, cols, scores)


def cuts(size: int, places: set[int]) -> list[slice]:
    ends = [0, *sorted(place for place in places if 0 < place < size), size]
    return [slice(left, right) for left, right in pairwise(ends)]


@given(kinds, sizes, sizes, seeds, st.sets(st.integers(1, 5)), st.sets(st.integers(1, 5)))
@settings(deadline=None, max_examples=80)
def test_tiles_of_any_split_make_the_whole(
    kind: str, T: int, S: int, seed: int, row_cuts: set[int], col_cuts: set[int]
) -> None:
    bias = MAKERS[kind](T, S, seed)
    whole = tile(bias, seed, T, S)
    assert whole.shape[1:] == (HEADS, T, S)
    blocks = [
        torch.cat([tile(bias, seed, T, S, rows, cols) for cols in cuts(S, col_cuts)], dim=-1)
        for rows in cuts(T, row_cuts)
    ]
    torch.testing.assert_close(torch.cat(blocks, dim=-2), whole, rtol=0, atol=1e-12)


@given(kinds, sizes, sizes, seeds)
@settings(deadline=None, max_examples=40)
def test_a_bias_made_of_its_own_leaves_is_the_same_bias(kind: str, T: int, S: int, seed: int) -> None:
    bias = MAKERS[kind](T, S, seed)
    again = bias.with_leaves([leaf.clone() for leaf in bias.leaves()])
    torch.testing.assert_close(tile(again, seed, T, S), tile(bias, seed, T, S), rtol=0, atol=0)
    assert again.reads_scores == bias.reads_scores


@pytest.mark.parametrize("kind", sorted(MAKERS))
def test_gradients_of_leaves_are_those_of_finite_differences(kind: str) -> None:
    T, S, seed = 3, 4, 11
    bias = MAKERS[kind](T, S, seed)
    leaves = tuple(leaf.detach().clone().requires_grad_() for leaf in bias.leaves())
    assert leaves
    assert torch.autograd.gradcheck(lambda *given: tile(bias.with_leaves(given), seed, T, S), leaves)


def naive(maker: Callable[..., Bias], T: int, S: int, seed: int, h: int, i: int, j: int) -> float:
    """One number of a Toeplitz bias, from its definition."""
    a, c = draw(seed, HEADS, 2)[h].tolist()
    if maker is uniform:
        distance = float((S - T + i) - j)
    else:
        scaled = [draw(seed + 1, T).mul(9)[i].item(), draw(seed + 2, S).mul(9)[j].item()]
        q, k = scaled if maker is timestamps else (float(round(one)) for one in scaled)
        distance = q - k
    return a * math.sin(0.3 * distance) + c * distance


@pytest.mark.parametrize("maker", [uniform, gathered, timestamps])
@pytest.mark.parametrize(("T", "S"), [(1, 1), (1, 5), (4, 4), (3, 6), (5, 2)])
def test_toeplitz_is_its_kernel_at_every_distance(maker: Callable[..., Bias], T: int, S: int) -> None:
    expected = [[[naive(maker, T, S, 3, h, i, j) for j in range(S)] for i in range(T)] for h in range(HEADS)]
    torch.testing.assert_close(maker(T, S, 3).tile()[0], torch.tensor(expected, dtype=torch.float64))


def test_batched_positions_give_each_sequence_its_own_tile() -> None:
    T, S, seed = 3, 5, 4
    q, k = (draw(seed + one, BATCH, n).mul(9).round().long() for one, n in ((1, T), (2, S)))
    got = batched(T, S, seed).tile()
    assert got.shape == (BATCH, HEADS, T, S)
    for b in range(BATCH):
        alone = Toeplitz(kernel, [draw(seed, HEADS, 2)], q[b], k[b], uniform=False).tile()
        torch.testing.assert_close(got[b], alone[0], rtol=0, atol=0)


@given(sizes, sizes, st.integers(-1000, 1000), st.integers(-1000, 1000), seeds)
@settings(deadline=None, max_examples=40)
def test_uniform_positions_give_what_gathering_gives(T: int, S: int, q_start: int, k_start: int, seed: int) -> None:
    at = torch.arange(T) + q_start, torch.arange(S) + k_start
    band, gather = (Toeplitz(kernel, [draw(seed, HEADS, 2)], *at, uniform=flag) for flag in (True, False))
    torch.testing.assert_close(band.tile(), gather.tile(), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("T", "S"), [(1, 1), (7, 7), (2, 9)])
def test_a_uniform_toeplitz_holds_one_number_for_each_distance(T: int, S: int) -> None:
    bias = uniform(T, S, 0)
    assert isinstance(bias, Toeplitz)
    assert bias.values is not None
    assert bias.values.shape == (HEADS, T + S - 1)
    (leaf,) = bias.leaves()
    assert leaf is bias.values


@pytest.mark.parametrize("flag", [True, False])
def test_the_gradient_of_a_table_sums_over_all_pairs(flag: bool) -> None:
    T, S, seed = 3, 5, 2
    table, weight = draw(seed, HEADS, 2).requires_grad_(), draw(seed + 1, HEADS, T, S)
    bias = Toeplitz(kernel, [table], torch.arange(T), torch.arange(S), uniform=flag)
    (bias.tile()[0] * weight).sum().backward()
    expected = torch.zeros(HEADS, 2, dtype=torch.float64)
    for h in range(HEADS):
        for i in range(T):
            for j in range(S):
                expected[h, 0] += weight[h, i, j] * math.sin(0.3 * (i - j))
                expected[h, 1] += weight[h, i, j] * (i - j)
    torch.testing.assert_close(table.grad, expected)


def test_the_gradient_of_a_uniform_leaf_sums_along_its_diagonal() -> None:
    T, S = 3, 5
    bias, weight = uniform(T, S, 1), draw(2, HEADS, T, S)
    values = bias.leaves()[0].detach().requires_grad_()
    (bias.with_leaves([values]).tile()[0] * weight).sum().backward()
    expected = torch.zeros(HEADS, T + S - 1, dtype=torch.float64)
    for i in range(T):
        for j in range(S):
            expected[:, (T - 1 - i) + j] += weight[:, i, j]
    torch.testing.assert_close(values.grad, expected)


def test_the_gradients_of_a_low_rank_bias_reach_query_head_and_key_group() -> None:
    T, S = 3, 4
    bias, weight = low_rank_of_groups(T, S, 3), draw(9, BATCH, HEADS, T, S)
    u, v = (leaf.detach().clone().requires_grad_() for leaf in bias.leaves())
    (bias.with_leaves([u, v]).tile() * weight).sum().backward()
    du, dv = torch.zeros_like(u), torch.zeros_like(v)
    for b in range(BATCH):
        for h in range(HEADS):
            group = h * KV_HEADS // HEADS
            for i in range(T):
                for j in range(S):
                    du[b, h, i] += weight[b, h, i, j] * v[b, group, j].detach()
                    dv[b, group, j] += weight[b, h, i, j] * u[b, h, i].detach()
    torch.testing.assert_close(u.grad, du)
    torch.testing.assert_close(v.grad, dv)


@given(st.sampled_from(["low_rank", "low_rank_of_groups"]), sizes, sizes, seeds)
@settings(deadline=None, max_examples=40)
def test_a_lift_equals_the_tile_up_to_a_constant_per_row(kind: str, T: int, S: int, seed: int) -> None:
    bias = MAKERS[kind](T, S, seed)
    assert isinstance(bias, LowRank)
    u, v = bias.lift()
    v = v.repeat_interleave(HEADS // v.shape[1], dim=1)
    lifted = torch.einsum("bhtr,bhsr->bhts", u.expand(v.shape[0], -1, -1, -1), v)
    rest = bias.tile() - lifted
    torch.testing.assert_close(rest, rest[..., :1].expand_as(rest), rtol=0, atol=1e-12)


@given(sizes, sizes, seeds)
@settings(deadline=None, max_examples=30)
def test_a_sum_is_the_sum_of_its_members(T: int, S: int, seed: int) -> None:
    members = [maker(T, S, seed + index) for index, maker in enumerate((uniform, low_rank, batched, rowwise))]
    expected = torch.zeros(BATCH, HEADS, T, S, dtype=torch.float64)
    for one in members:
        expected = expected + one.tile()
    torch.testing.assert_close(Sum(members).tile(), expected, rtol=0, atol=1e-12)


def test_a_sum_reads_scores_where_a_member_does() -> None:
    assert Sum([uniform(2, 2, 0), reading(2, 2, 0)]).reads_scores
    assert not Sum([uniform(2, 2, 0), rowwise(2, 2, 0)]).reads_scores


def test_a_bias_that_reads_scores_uses_those_of_its_rows() -> None:
    T, S, seed = 4, 3, 1
    scores, gains = draw(5, BATCH, HEADS, T, S), draw(seed, HEADS)
    got = reading(T, S, seed).tile(slice(1, 3), slice(2, 3), scores[..., 1:3, :])
    for b in range(BATCH):
        for h in range(HEADS):
            for i in (1, 2):
                assert got[b, h, i - 1, 0].item() == pytest.approx(gains[h].item() * scores[b, h, i, 2].item() ** 2)


def test_a_bias_that_reads_scores_says_so_when_none_come() -> None:
    with pytest.raises(ValueError, match="reads the scores"):
        reading(2, 2, 0).tile()
