"""The order of hooks, and what a cache keeps, with encodings made for these tests.

Shapes: B batch, H heads, T queries, S keys, D head channels, C model channels.
"""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from grape_bench.attention import Attention, Cache, attend
from grape_bench.backends import Mask
from grape_bench.backends.eager import Eager
from grape_bench.bias import Bias, LowRank
from grape_bench.encodings import At, Composition, Encoding, Site, build
from grape_bench.errors import Unsupported

B, H, KV, T, D = 2, 4, 2, 7, 4
SITE = Site(width=H * D, heads=H, kv_heads=KV, head_dim=D, train_length=16, longest=32, causal=True)


def draw(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


class Forgetting(Encoding):
    """Sums of log gates made from keys and inputs, each key with the sum up to itself: b(i, j) = c_i - c_j.

    Args:
        rate: of forgetting, so that two of them differ.
    """

    features = 1
    domain = "causal"

    def __init__(self, rate: float):
        super().__init__()
        self.rate = rate

    def state(self, k: Tensor, at: At, carry: Any) -> tuple[Tensor, Any]:
        gates = -self.rate * (1 + k[..., :1].tanh() ** 2 + at.x[:, None, :, :1].tanh() ** 2)
        sums = gates.cumsum(dim=-2) + (0.0 if carry is None else carry)
        return sums, sums[..., -1:, :]

    def bias(self, q: Tensor, features: Tensor | None, at: At) -> Bias:
        assert features is not None
        return LowRank(q.new_ones(1, q.shape[1], q.shape[2], 1), -features)


class Recorder(Encoding):
    """Remembers what its hooks were given, and doubles what it rotates."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, Tensor] = {}

    def state(self, k: Tensor, at: At, carry: Any) -> tuple[None, Any]:
        self.seen["state k"] = k
        return None, carry

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        self.seen |= {"rotate q": q, "rotate k": k}
        return 2 * q, 2 * k

    def bias(self, q: Tensor, features: Tensor | None, at: At) -> None:
        self.seen["bias q"] = q


def inputs(count: int = T) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor]:
    return (draw(1, B, H, count, D), draw(2, B, KV, count, D), draw(3, B, KV, count, D)), draw(4, B, count, H * D)


def forgetting_by_hand(rates: list[float]) -> Tensor:
    (q, k, v), x = inputs()
    out = torch.zeros(B, H, T, D, dtype=torch.float64)
    for b in range(B):
        for h in range(H):
            g = h // (H // KV)
            for i in range(T):
                scores = []
                for j in range(i + 1):
                    gate = sum(1 + k[b, g, s, 0].tanh() ** 2 + x[b, s, 0].tanh() ** 2 for s in range(j + 1, i + 1))
                    scores.append(q[b, h, i] @ k[b, g, j] / D**0.5 - sum(rates) * gate)
                weights = torch.stack(scores).softmax(dim=0)
                out[b, h, i] = weights @ v[b, g, : i + 1]
    return out


ENCODINGS = {
    "alone": lambda: Forgetting(0.3),
    "two of them and a rotation": lambda: Composition([Forgetting(0.1), build("rope", SITE), Forgetting(0.2)]),
}


def in_pieces(encoding: Encoding, sizes: list[int], count: int = T) -> Tensor:
    (q, k, v), x = inputs(count)
    cache, rows, start = Cache(count), [], 0
    for size in sizes:
        part, at = slice(start, start + size), torch.arange(start, start + size)
        piece = (q[:, :, part], k[:, :, part], v[:, :, part])
        rows.append(attend(encoding, Eager(), piece, At(x[:, part], at, at, False), Mask(causal=True), cache))
        start += size
    return torch.cat(rows, dim=2)


def at_once(encoding: Encoding) -> Tensor:
    qkv, x = inputs()
    at = torch.arange(T)
    return attend(encoding, Eager(), qkv, At(x, at, at, True), Mask(causal=True))


def test_features_of_keys_make_the_bias_of_a_loop() -> None:
    torch.testing.assert_close(at_once(Forgetting(0.3)), forgetting_by_hand([0.3]), rtol=0, atol=1e-12)


def test_each_part_of_a_composition_gets_its_own_features() -> None:
    both = Composition([Forgetting(0.1), build("none", SITE), Forgetting(0.2)])
    assert both.features == 2
    torch.testing.assert_close(at_once(both), forgetting_by_hand([0.1, 0.2]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("sizes", [[1] * T, [4, 1, 2], [T]])
def test_a_running_carry_and_cached_features_equal_all_at_once(name: str, sizes: list[int]) -> None:
    """A sum that restarts with each chunk is the fault of several public decoders."""
    encoding = ENCODINGS[name]()
    torch.testing.assert_close(in_pieces(encoding, sizes), at_once(encoding), rtol=0, atol=1e-12)


def test_rotation_sees_normalised_and_the_bias_unrotated_queries() -> None:
    encoding = Recorder()
    layer = Attention(SITE, encoding, Eager(), qk_norm=True).double()
    x, at = draw(0, B, T, H * D), torch.arange(T)
    layer(At(x, at, at, True), Mask(causal=True))
    for name in ("rotate q", "rotate k", "state k", "bias q"):
        mean_square = encoding.seen[name].pow(2).mean(dim=-1)
        torch.testing.assert_close(mean_square, torch.ones_like(mean_square), rtol=0, atol=1e-6)
    assert encoding.seen["bias q"] is encoding.seen["rotate q"]


def test_without_qk_norm_projections_reach_the_encoding_as_they_are() -> None:
    encoding = Recorder()
    layer = Attention(SITE, encoding, Eager()).double()
    x, at = draw(0, B, T, H * D), torch.arange(T)
    layer(At(x, at, at, True), Mask())
    expected = (x @ layer.query.weight.T + layer.query.bias).reshape(B, T, H, D).transpose(1, 2)
    torch.testing.assert_close(encoding.seen["rotate q"], expected, rtol=0, atol=1e-12)


def test_the_last_queries_alone_give_the_last_rows() -> None:
    layer = Attention(SITE, build("rope + alibi", SITE), Eager()).double()
    x, at = draw(0, B, T, H * D), torch.arange(T)
    whole = layer(At(x, at, at, True), Mask(causal=True))
    tail = layer(At(x, at[-2:], at, True), Mask(causal=True))
    assert tail.shape == (B, 2, H * D)
    torch.testing.assert_close(tail, whole[:, -2:], rtol=0, atol=1e-12)


def test_a_cache_keeps_rotated_keys_in_buffers_that_stay() -> None:
    (_, k, v), _ = inputs()
    cache = Cache(T)
    assert cache.view("k") is None
    cache.append(k[:, :, :3], v[:, :, :3], None, torch.arange(3))
    first = cache.view("k")
    cache.append(k[:, :, 3:], v[:, :, 3:], None, torch.arange(3, T))
    second = cache.view("k")
    assert first is not None
    assert second is not None
    assert first.data_ptr() == second.data_ptr(), "filled in place"
    torch.testing.assert_close(second, k, rtol=0, atol=0)
    assert torch.equal(cache.view("positions"), torch.arange(T))  # type: ignore[arg-type]
    assert cache.view("features") is None


def test_a_full_cache_refuses_another_key() -> None:
    (_, k, v), _ = inputs()
    cache = Cache(T)
    cache.append(k, v, None, torch.arange(T))
    with pytest.raises(ValueError, match=f"{T} keys cannot take key number {T + 1}"):
        cache.append(k[:, :, :1], v[:, :, :1], None, torch.arange(1))


def test_a_causal_encoding_in_an_encoder_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="bidirectional"):
        build("alibi(form='causal')", replace(SITE, causal=False))


@torch.no_grad()
def test_autocast_rounds_no_running_sum() -> None:
    """The gates of forgetting attention, summed in bfloat16, made outputs wrong by two thirds at 513 tokens."""
    at, fox = torch.arange(513), build("fox", SITE)
    fox.reset(torch.Generator().manual_seed(0))
    q, k, v = (draw(seed, 1, H if seed == 1 else KV, 513, D).bfloat16() for seed in (1, 2, 3))
    call = At(draw(4, 1, 513, H * D).float(), at, at, uniform=True)
    alone = attend(fox, Eager(), (q, k, v), call, Mask(causal=True))
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(attend(fox, Eager(), (q, k, v), call, Mask(causal=True)), alone, rtol=0, atol=0)
