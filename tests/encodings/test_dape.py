"""DAPE against its network worked out for one pair of tokens at a time."""

import pytest
import torch
from torch import Tensor

from grape_bench.attention import attend
from grape_bench.backends import Mask
from grape_bench.backends.eager import Eager
from grape_bench.encodings import At, Encoding, Site, build
from grape_bench.encodings.dape import Dape
from grape_bench.errors import Unsupported

B, H, D = 2, 3, 4


def draw(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def made(text: str, *, causal: bool = True, kv_heads: int = H) -> Encoding:
    return build(text, Site(H * D, H, kv_heads, D, 64, 64, causal=causal)).double()


def dape(inner: str = "alibi", *, causal: bool = True, width: int = 5) -> Dape:
    encoding = made(f"dape({inner}, width={width})", causal=causal)
    assert isinstance(encoding, Dape)
    encoding.reset(torch.Generator().manual_seed(0))
    return encoding


def call(x: Tensor) -> At:
    at = torch.arange(x.shape[-2])
    return At(x, at, at, uniform=True)


def corrected(encoding: Dape, a: list[float], b: list[float], h: int) -> float:
    """b_h + f([a; b])_h, hidden unit by hidden unit."""
    seen = a + [0.0 if abs(one) == float("inf") else one for one in b]
    total = b[h] + encoding.second_shift[h, 0].item()
    for n in range(encoding.first.shape[0]):
        hidden = encoding.first_shift[n, 0].item() + sum(
            encoding.first[n, m].item() * one for m, one in enumerate(seen)
        )
        total += encoding.second[h, n].item() * (hidden if hidden > 0 else 0.01 * hidden)
    return total


@pytest.mark.parametrize(("inner", "causal"), [("alibi", True), ("alibi", False), ("kerple + window(tokens=4)", True)])
def test_the_bias_is_corrected_by_the_network_of_all_heads(inner: str, causal: bool) -> None:
    """An encoder's alibi hides one side from each head, and a window far keys: a wall stays a wall."""
    encoding, q, k = dape(inner, causal=causal), draw(1, B, H, 6, D), draw(2, B, H, 6, D)
    scores = q @ k.transpose(-1, -2) / D**0.5
    bias = encoding.bias(q, None, call(q))
    got = bias.tile(scores=scores)
    plain = made(inner, causal=causal).bias(q, None, call(q))
    assert plain is not None
    base = plain.tile()[0]
    for b in range(B):
        for h in range(H):
            for i in range(6):
                for j in range(6):
                    pair = scores[b, :, i, j].tolist(), base[:, i, j].tolist()
                    assert got[b, h, i, j].item() == pytest.approx(corrected(encoding, *pair, h), abs=1e-10)


def test_heads_see_each_other() -> None:
    encoding, q, k = dape(), draw(1, B, H, 6, D), draw(2, B, H, 6, D)
    bias, scores = encoding.bias(q, None, call(q)), q @ k.transpose(-1, -2)
    other = scores.clone()
    other[:, 2] += 1.0
    assert (bias.tile(scores=other) - bias.tile(scores=scores))[:, 0].abs().min() > 1e-4
    assert "heads" in encoding.breaks


def test_what_the_wrapped_encoding_learns_has_its_gradient() -> None:
    encoding, q, k = dape("kerple"), draw(1, B, H, 6, D), draw(2, B, H, 6, D)
    bias = encoding.bias(q, None, call(q))
    bias.tile(scores=q @ k.transpose(-1, -2)).pow(2).sum().backward()
    names = {name for name, one in encoding.named_parameters() if one.grad is not None and one.grad.abs().max() > 0}
    assert names == {"first", "first_shift", "second", "second_shift", "inner.p", "inner.a"}


def test_the_other_hooks_are_those_of_the_wrapped_encoding() -> None:
    encoding, plain = dape("rope + alibi"), made("rope + alibi")
    q, k = draw(1, B, H, 6, D), draw(2, B, H, 6, D)
    for got, expected in zip(encoding.rotate(q, k, None, call(q)), plain.rotate(q, k, None, call(q)), strict=True):
        torch.testing.assert_close(got, expected, rtol=0, atol=0)


def test_features_of_the_wrapped_encoding_reach_its_bias() -> None:
    encoding = made("dape(transformer_xl(channels=4), width=5)", kv_heads=1)
    assert encoding.features == H
    q, k, v = draw(1, B, H, 6, D), draw(2, B, 1, 6, D), draw(3, B, 1, 6, D)
    with torch.no_grad():
        for name, one in encoding.named_parameters():
            one.copy_(draw(len(name), *one.shape))
    whole = attend(encoding, Eager(), (q, k, v), call(draw(4, B, 6, H * D)), Mask(causal=True))
    assert whole.shape == (B, H, 6, D)
    assert whole.isfinite().all()


def test_it_starts_as_linear_layers_do() -> None:
    encoding = dape(width=400)
    for one, inputs in ((encoding.first, 2 * H), (encoding.second, 400)):
        bound = inputs**-0.5
        assert bound * 0.95 < one.abs().max().item() <= bound
        assert one.std().item() == pytest.approx(bound / 3**0.5, rel=0.05)


@pytest.mark.parametrize("inner", ["rope", "none", "sinusoidal"])
def test_an_encoding_without_a_bias_is_unsupported(inner: str) -> None:
    with pytest.raises(Unsupported, match="bias"):
        made(f"dape({inner})")
