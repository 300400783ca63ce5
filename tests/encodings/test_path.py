"""PaTH against products of reflections, one token at a time, in float64."""

import math

import pytest
import torch
from torch import Tensor

from grape_bench.attention import attend
from grape_bench.backends import Mask
from grape_bench.backends.eager import Eager
from grape_bench.bias import Bias
from grape_bench.encodings import At, Encoding, Site, build

D, T = 8, 7


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def path(text: str = "path", *, heads: int = 4, kv_heads: int = 2) -> Encoding:
    encoding = build(text, Site(5, heads, kv_heads, D, 64, 64, causal=True)).double()
    with torch.no_grad():
        for seed, parameter in enumerate(encoding.parameters()):
            parameter.copy_(drawn(seed, *parameter.shape))
    return encoding


def call(x: Tensor, rows: int = T) -> At:
    return At(x, torch.arange(T)[-rows:], torch.arange(T), uniform=True)


def bias(encoding: Encoding, q: Tensor, k: Tensor, x: Tensor) -> Bias:
    at = call(x, q.shape[-2])
    features, _ = encoding.state(k, at, None)
    found = encoding.bias(q, features, at)
    assert found is not None
    return found


def reflection(encoding: Encoding, x: Tensor, head: int) -> Tensor:
    """H of one token and key head."""
    w = encoding.direction[D * head : D * head + D] @ x
    w = w / w.norm()
    beta = 2 / (1 + math.exp(-(encoding.gate[head] @ x + encoding.start[head]).item()))
    return torch.eye(D, dtype=torch.float64) - beta * torch.outer(w, w)


@torch.no_grad()
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_a_score_is_the_product_of_reflections_behind_the_key(kv_heads: int) -> None:
    encoding = path(kv_heads=kv_heads)
    x, q, k = drawn(10, 2, T, 5), drawn(11, 2, 4, T, D), drawn(12, 2, kv_heads, T, D)
    got = q @ k.repeat_interleave(4 // kv_heads, dim=1).mT / D**0.5 + bias(encoding, q, k, x).tile()
    for b in range(2):
        for h in range(4):
            head = h * kv_heads // 4
            for j in range(T):
                key = k[b, head, j]
                for i in range(j, T):
                    if i > j:
                        key = reflection(encoding, x[b, i], head) @ key  # H_{j+1} first, H_i last
                    assert got[b, h, i, j].item() == pytest.approx((q[b, h, i] @ key).item() / D**0.5, abs=1e-12)


@torch.no_grad()
def test_the_order_of_the_product_matters() -> None:
    encoding, x = path(heads=1, kv_heads=1), drawn(10, 1, T, 5)
    q, k = drawn(11, 1, 1, T, D), drawn(12, 1, 1, T, D)
    score = (q @ k.mT / D**0.5 + bias(encoding, q, k, x).tile())[0, 0, -1, 0].item()
    key = k[0, 0, 0]
    for i in range(T - 1, 0, -1):
        key = reflection(encoding, x[0, i], 0) @ key
    assert abs(score - (q[0, 0, -1] @ key).item() / D**0.5) > 1e-2


@torch.no_grad()
def test_no_strength_changes_no_score_and_full_strength_keeps_norms() -> None:
    x, q, k = drawn(10, 1, T, 5), torch.eye(D, dtype=torch.float64).expand(1, 1, D, D)[:, :, -T:], drawn(12, 1, 1, T, D)
    encoding = path(heads=1, kv_heads=1)
    encoding.gate.zero_()
    encoding.start.fill_(-40.0)
    assert bias(encoding, q, k, x).tile().abs().max() < 1e-12
    encoding.start.fill_(40.0)
    # The last query in turn along every axis reads off what has become of the first key.
    axes = torch.eye(D, dtype=torch.float64)[:, None, None].expand(-1, 1, T, -1)
    many = (one.expand(D, *one.shape[1:]) for one in (k, x))
    keys, inputs = many
    turned = (axes @ keys.mT / D**0.5 + bias(encoding, axes, keys, inputs).tile())[:, 0, -1, 0] * D**0.5
    assert turned.norm().item() == pytest.approx(k[0, 0, 0].norm().item(), abs=1e-10)


@torch.no_grad()
def test_rows_of_fewer_queries_are_the_last_rows_of_the_whole() -> None:
    encoding, x, q, k = path(), drawn(10, 2, T, 5), drawn(11, 2, 4, T, D), drawn(12, 2, 2, T, D)
    whole, last = bias(encoding, q, k, x).tile(), bias(encoding, q[:, :, -4:], k, x)
    torch.testing.assert_close(last.tile(), whole[:, :, -4:], rtol=0, atol=1e-12)
    torch.testing.assert_close(last.tile(slice(1, 3)), whole[:, :, 4:6], rtol=0, atol=1e-12)
    torch.testing.assert_close(last.tile(slice(0, 1), slice(2, 5)), whole[:, :, 3:4, 2:5], rtol=0, atol=1e-12)


@torch.no_grad()
def test_a_forget_gate_beside_it_is_not_scaled() -> None:
    """One published kernel divides the gate by sqrt(D), together with the scores."""
    x, q, k = drawn(10, 2, T, 5), drawn(11, 2, 4, T, D), drawn(12, 2, 2, T, D)
    both = path("path + fox")
    parts = [bias(part, q, k, x).tile() for part in both.parts]
    torch.testing.assert_close(bias(both, q, k, x).tile(), parts[0] + parts[1], rtol=0, atol=1e-12)
    fox = both.parts[1]
    gates = torch.nn.functional.logsigmoid(x @ fox.weight.T + fox.start)  # (B, T, H)
    for i in range(T):
        for j in range(i):
            expected = gates[:, j + 1 : i + 1].sum(dim=1)
            torch.testing.assert_close(parts[1][:, :, i, j], expected, rtol=0, atol=1e-12)


@torch.no_grad()
def test_later_tokens_change_nothing() -> None:
    encoding, q, k, v = path(), drawn(11, 2, 4, T, D), drawn(12, 2, 2, T, D), drawn(13, 2, 2, T, D)
    x = drawn(10, 2, T, 5)
    other = torch.cat((x[:, :4], drawn(14, 2, T - 4, 5)), dim=1)
    outputs = [attend(encoding, Eager(), (q, k, v), call(one), Mask(causal=True)) for one in (x, other)]
    torch.testing.assert_close(outputs[0][:, :, :4], outputs[1][:, :, :4], rtol=0, atol=0)
    assert (outputs[0] - outputs[1]).abs().max() > 1e-3
