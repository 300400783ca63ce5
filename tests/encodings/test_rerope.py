"""ReRoPE against scores at clipped distances, pair by pair in float64."""

import math

import pytest
import torch
from torch import Tensor

from grape_bench.encodings import At, Encoding, Site, build
from grape_bench.errors import Unsupported

D = 8


def rerope(options: str = "", *, causal: bool = True, kv_heads: int = 4, train_length: int = 8) -> Encoding:
    return build(f"rerope({options})", Site(4 * D, 4, kv_heads, D, train_length, 64, causal=causal))


def draw(count: int, kv_heads: int = 4) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(2, heads, count, D, generator=generator, dtype=torch.float64) for heads in (4, kv_heads))
    return q, k


def scores(encoding: Encoding, q: Tensor, k: Tensor, positions: Tensor) -> Tensor:
    """Scaled scores with the bias, (B, H, T, S)."""
    at = At(q, positions[..., -q.shape[2] :], positions, uniform=False)
    turned_q, turned_k, bias = encoding.encode(q, k, at)
    assert bias is not None
    groups = q.shape[1] // k.shape[1]
    return turned_q @ turned_k.repeat_interleave(groups, dim=1).transpose(-1, -2) / math.sqrt(D) + bias.tile()


def at_distance(q: list[float], k: list[float], distance: float, layout: str, base: float = 10_000) -> float:
    """q^T R(-distance) k / sqrt(D), plane by plane."""
    total = 0.0
    for i in range(D // 2):
        a, b = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + D // 2)
        cos, sin = math.cos(distance * base ** (-2 * i / D)), math.sin(distance * base ** (-2 * i / D))
        total += cos * (q[a] * k[a] + q[b] * k[b]) + sin * (q[a] * k[b] - q[b] * k[a])
    return total / math.sqrt(D)


def expected(q: Tensor, k: Tensor, positions: list[int], window: int, leak: float, layout: str) -> Tensor:
    found = torch.zeros(2, 4, q.shape[2], len(positions), dtype=torch.float64)
    rows = positions[-q.shape[2] :]
    for b, h, row, col in torch.cartesian_prod(*map(torch.arange, found.shape)).tolist():
        distance = rows[row] - positions[col]
        if abs(distance) > window:
            distance = math.copysign(window + leak * (abs(distance) - window), distance)
        key = k[b, h * k.shape[1] // 4, col]
        found[b, h, row, col] = at_distance(q[b, h, row].tolist(), key.tolist(), distance, layout)
    return found


@pytest.mark.parametrize("layout", ["interleaved", "half"])
@pytest.mark.parametrize(("window", "leak"), [(3, 0.0), (3, 0.25), (1, 0.9)])
@pytest.mark.parametrize(("causal", "kv_heads"), [(True, 4), (True, 2), (False, 1)])
def test_scores_are_those_of_clipped_distances(
    layout: str, window: int, leak: float, causal: bool, kv_heads: int
) -> None:
    encoding = rerope(f"window={window}, leak={leak}, layout={layout!r}", causal=causal, kv_heads=kv_heads)
    q, k = draw(7, kv_heads)
    positions = [0, 1, 2, 3, 7, 20, 21]
    got = scores(encoding, q, k, torch.tensor(positions))
    exact = expected(q, k, positions, window, leak, layout)
    seen = torch.ones(7, 7, dtype=torch.bool).tril() if causal else torch.ones(7, 7, dtype=torch.bool)
    torch.testing.assert_close(got[..., seen], exact[..., seen], rtol=0, atol=1e-12)


def test_all_keys_beyond_the_window_stand_at_its_edge() -> None:
    """A key's place changes no score as long as it is far."""
    q, k = draw(7)
    encoding = rerope("window=4")
    near, far = (scores(encoding, q, k, torch.tensor([0, 3, 5, 6, start, start + 1, start + 2])) for start in (20, 900))
    torch.testing.assert_close(near[..., 4:, :4], far[..., 4:, :4], rtol=0, atol=1e-11)


def test_within_the_window_it_is_rope_and_adds_nothing() -> None:
    q, k = draw(5)
    positions = torch.arange(5) + 30
    at = At(q, positions, positions, uniform=True)
    turned_q, turned_k, bias = rerope(train_length=8).encode(q, k, at)  # half of 8: four tokens
    rope = build("rope", Site(4 * D, 4, 4, D, 8, 64)).rotate(q, k, None, at)
    assert torch.equal(turned_q, rope[0])
    assert torch.equal(turned_k, rope[1])
    assert bias is not None
    assert bias.tile().abs().max() == 0
    outside = rerope(train_length=6).encode(q, k, at)[2]
    assert outside is not None
    assert (outside.tile()[..., 4:, 0] != 0).all()


def test_rows_can_be_taken_in_blocks_and_of_the_last_queries() -> None:
    q, k = draw(9)
    positions = torch.stack((torch.arange(9), 3 * torch.arange(9)))
    encoding = rerope("window=2, leak=0.5")
    _, _, bias = encoding.encode(q, k, At(q, positions, positions, uniform=False))
    assert bias is not None
    whole = bias.tile()
    blocks = torch.cat([bias.tile(rows) for rows in (slice(0, 4), slice(4, 5), slice(5, 9))], dim=-2)
    torch.testing.assert_close(blocks, whole, rtol=0, atol=1e-13)
    last = scores(encoding, q[:, :, -3:], k, positions)
    torch.testing.assert_close(last, scores(encoding, q, k, positions)[:, :, -3:], rtol=0, atol=1e-12)


def test_gradients_pass_through_the_leaves() -> None:
    encoding = rerope("window=2, leak=0.5")
    q, k = draw(6)
    q.requires_grad_(), k.requires_grad_()
    positions = torch.arange(6)
    _, _, bias = encoding.encode(q, k, At(q, positions, positions, uniform=True))
    assert bias is not None
    exact = torch.autograd.grad(bias.tile().pow(2).sum(), (q, k), retain_graph=True)
    cut = [leaf.detach().requires_grad_() for leaf in bias.leaves()]
    steps = torch.autograd.grad(bias.with_leaves(cut).tile().pow(2).sum(), cut)
    torch.testing.assert_close(torch.autograd.grad(bias.leaves(), (q, k), steps), exact, rtol=0, atol=1e-12)


@pytest.mark.parametrize("options", ["window=0", "leak=1", "leak=-0.1", "base=0"])
def test_impossible_options_are_unsupported(options: str) -> None:
    with pytest.raises(Unsupported):
        rerope(options)


def test_an_odd_head_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="even"):
        build("rerope", Site(14, 2, 2, 7, 64, 64))
