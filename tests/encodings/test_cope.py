"""CoPE against gates counted one by one in plain numbers."""

import math

import pytest
import torch
from torch import Tensor

from grape_bench.attention import attend
from grape_bench.backends import Mask
from grape_bench.backends.eager import Eager
from grape_bench.backends.sdpa import Sdpa
from grape_bench.encodings import At, Site, build
from grape_bench.encodings.cope import Cope
from grape_bench.errors import Unsupported

B, H, D, P = 2, 3, 4, 4
SITE = Site(H * D, H, H, D, 64, 64, causal=True)


def draw(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def cope(options: str = f"positions={P}") -> Cope:
    encoding = build(f"cope({options})", SITE).double()
    assert isinstance(encoding, Cope)
    with torch.no_grad():
        encoding.table.copy_(draw(9, *encoding.table.shape))
    return encoding


def scores_of(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-1, -2) / math.sqrt(D)


def tile(encoding: Cope, q: Tensor, k: Tensor, rows: slice = slice(None)) -> Tensor:
    at, T = torch.arange(k.shape[-2]), q.shape[-2]
    bias = encoding.bias(q, None, At(q, at[-T:], at, uniform=True))
    assert bias.reads_scores
    return bias.tile(rows, scores=scores_of(q, k)[:, :, rows])


def counted(scores: list[float], i: int, j: int) -> float:
    """Open gates from key j up to the query itself, at most the last position."""
    return min(sum(1 / (1 + math.exp(-scores[n])) for n in range(j, i + 1)), P - 1)


def value(table: Tensor, q: Tensor, far: float) -> float:
    """q . e between the two whole positions around it."""
    low, high = math.floor(far), math.ceil(far)
    share = far - low
    return sum(q[c].item() * ((1 - share) * table[low, c].item() + share * table[high, c].item()) for c in range(D))


@pytest.mark.parametrize("heads", ["shared", "own"])
def test_the_bias_is_the_query_times_the_vector_of_the_counted_distance(heads: str) -> None:
    encoding, q, k = cope(f"positions={P}, heads={heads!r}"), draw(0, B, H, 8, D), draw(1, B, H, 8, D)
    got, scores = tile(encoding, q, k), scores_of(q, k)
    clipped = 0
    for b in range(B):
        for h in range(H):
            for i in range(8):
                for j in range(i + 1):
                    far = counted(scores[b, h, i].tolist(), i, j)
                    clipped += far == P - 1
                    expected = value(encoding.table[h if heads == "own" else 0], q[b, h, i], far)
                    assert got[b, h, i, j].item() == pytest.approx(expected, abs=1e-10)
    assert clipped


def test_a_query_counts_itself() -> None:
    """With all gates wide open the distance of its own key is 1, of the one before 2, and at most P - 1."""
    encoding, q = cope(), torch.full((1, H, 6, D), 10.0, dtype=torch.float64)
    got = tile(encoding, q, q)
    for i in range(6):
        for j in range(i + 1):
            expected = value(encoding.table[0], q[0, 0, i], min(i - j + 1, P - 1))
            assert got[0, 0, i, j].item() == pytest.approx(expected, abs=1e-10)


def test_keys_ahead_open_no_gate() -> None:
    """Without the mask before the gates, a later token changes an earlier row by as much as any other."""
    encoding, q, k, v = cope(), draw(0, B, H, 8, D), draw(1, B, H, 8, D), draw(2, B, H, 8, D)
    at = torch.arange(8)

    def run(k: Tensor, v: Tensor) -> Tensor:
        return attend(encoding, Eager(), (q, k, v), At(q, at, at, uniform=True), Mask(causal=True))

    later = [one.clone() for one in (k, v)]
    for one in later:
        one[:, :, 5:] += 3.0
    before, after = run(k, v), run(*later)
    torch.testing.assert_close(after[:, :, :5], before[:, :, :5], rtol=0, atol=1e-12)
    assert (after[:, :, 5:] - before[:, :, 5:]).abs().max() > 0.1
    open_ahead = scores_of(q, k).sigmoid().flip(-1).cumsum(-1).flip(-1)
    masked = scores_of(q, k).sigmoid().tril().flip(-1).cumsum(-1).flip(-1)
    assert (open_ahead - masked).tril().abs().max() > 1.0


def test_the_last_queries_alone_are_those_rows() -> None:
    encoding, q, k = cope(), draw(0, B, H, 8, D), draw(1, B, H, 8, D)
    whole = tile(encoding, q, k)
    torch.testing.assert_close(tile(encoding, q[:, :, -3:], k), whole[:, :, -3:], rtol=0, atol=1e-12)
    torch.testing.assert_close(tile(encoding, q, k, slice(2, 5)), whole[:, :, 2:5], rtol=0, atol=1e-12)


def test_where_tokens_stand_plays_no_part() -> None:
    encoding, q, k = cope(), draw(0, B, H, 5, D), draw(1, B, H, 5, D)
    there = torch.tensor([3, 70, 71, 500, 501])
    bias = encoding.bias(q, None, At(q, there, there, uniform=False))
    torch.testing.assert_close(bias.tile(scores=scores_of(q, k)), tile(encoding, q, k), rtol=0, atol=0)


def test_it_starts_as_no_bias_at_all_with_one_table_for_all_heads() -> None:
    encoding = build("cope", SITE)
    assert isinstance(encoding, Cope)
    assert encoding.table.shape == (1, 64, D)
    assert not encoding.table.any()


def test_the_gates_have_a_gradient_too() -> None:
    encoding, q, k = cope(), draw(0, B, H, 6, D).requires_grad_(), draw(1, B, H, 6, D).requires_grad_()
    grads = torch.autograd.grad(tile(encoding, q, k).tril().pow(2).sum(), [q, k, encoding.table])
    assert all(one.abs().max() > 1e-3 for one in grads)


def test_what_never_shows_its_scores_cannot_do_it() -> None:
    q, at = draw(0, B, H, 5, D), torch.arange(5)
    with pytest.raises(Unsupported, match="scores"):
        attend(cope(), Sdpa(), (q, q, q), At(q, at, at, uniform=True), Mask(causal=True))


def test_an_encoder_and_a_single_position_are_unsupported() -> None:
    with pytest.raises(Unsupported, match="causal only"):
        build("cope", Site(H * D, H, H, D, 64, 64))
    with pytest.raises(Unsupported, match="at least 2"):
        build("cope(positions=1)", SITE)
