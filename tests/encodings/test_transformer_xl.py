"""Transformer-XL against its four terms, one pair at a time, with the waves of each distance written out."""

import math

import pytest
import torch
from torch import Tensor

from grape_bench.encodings import At, Site, build
from grape_bench.encodings.transformer_xl import TransformerXl
from grape_bench.errors import Unsupported

B, H, D = 2, 4, 6


def draw(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def transformer_xl(options: str = "channels=8", kv_heads: int = H) -> TransformerXl:
    encoding = build(f"transformer_xl({options})", Site(H * D, H, kv_heads, D, 64, 64)).double()
    assert isinstance(encoding, TransformerXl)
    with torch.no_grad():
        for seed, one in enumerate(encoding.parameters()):
            one.copy_(draw(seed, *one.shape))
    return encoding


def wave(distance: float, channels: int) -> Tensor:
    """[sin, cos] of the distance at half as many frequencies as channels."""
    angles = [distance * 10_000 ** (-2 * m / channels) for m in range(channels // 2)]
    return torch.tensor([math.sin(a) for a in angles] + [math.cos(a) for a in angles], dtype=torch.float64)


def tile(encoding: TransformerXl, q: Tensor, k: Tensor, q_pos: Tensor, k_pos: Tensor) -> Tensor:
    at = At(q, q_pos, k_pos, uniform=False)
    features, _ = encoding.state(k, at, None)
    return encoding.bias(q, features, at).tile()


@pytest.mark.parametrize("kv_heads", [4, 2, 1])
@pytest.mark.parametrize("start", [0, 5000])
def test_the_score_is_the_sum_of_its_four_terms(kv_heads: int, start: int) -> None:
    encoding = transformer_xl(kv_heads=kv_heads)
    q, k = draw(20, B, H, 5, D), draw(21, B, kv_heads, 7, D)
    got = tile(encoding, q, k, torch.arange(5) + start + 2, torch.arange(7) + start)
    u, v, W = encoding.u, encoding.v, encoding.waves
    for b in range(B):
        for h in range(H):
            for i in range(5):
                for j in range(7):
                    key, r = k[b, h * kv_heads // H, j], W[h] @ wave(i + 2 - j, 8)
                    four = (q[b, h, i] + u[h]) @ key + (q[b, h, i] + v[h]) @ r
                    expected = (four - q[b, h, i] @ key) / math.sqrt(D)  # q . k is the backend's
                    assert got[b, h, i, j].item() == pytest.approx(expected.item(), abs=1e-10)


def test_it_is_a_lift_of_its_channels_and_one_for_the_learned_query() -> None:
    encoding, at = transformer_xl(), torch.arange(5)
    q, k = draw(20, B, H, 5, D), draw(21, B, H, 5, D)
    features, _ = encoding.state(k, At(q, at, at, uniform=True), None)
    bias = encoding.bias(q, features, At(q, at, at, uniform=True))
    pieces = [one.lift() for one in bias.members]
    assert [u.shape[-1] for u, _ in pieces] == [1, 8]
    lifted = sum(u @ v.transpose(-1, -2) for u, v in pieces)
    torch.testing.assert_close(lifted, bias.tile(), rtol=0, atol=1e-12)


def test_channels_are_the_models_width_by_default() -> None:
    encoding = build("transformer_xl", Site(H * D, H, H, D, 64, 64))
    assert isinstance(encoding, TransformerXl)
    assert encoding.waves.shape == (H, D, H * D)


def test_it_starts_with_no_learned_query_and_waves_of_unit_size() -> None:
    encoding = build("transformer_xl(channels=400)", Site(H * D, H, H, D, 64, 64))
    assert isinstance(encoding, TransformerXl)
    encoding.reset(torch.Generator().manual_seed(0))
    assert not encoding.u.any()
    assert not encoding.v.any()
    assert encoding.waves.std().item() == pytest.approx(400**-0.5, rel=0.03)


def test_every_parameter_has_a_gradient() -> None:
    encoding = transformer_xl(kv_heads=2)
    tile(encoding, draw(1, B, H, 5, D), draw(2, B, 2, 5, D), torch.arange(5), torch.arange(5)).pow(2).sum().backward()
    for name, one in encoding.named_parameters():
        assert one.grad is not None, name
        assert (one.grad.flatten(1).abs().amax(dim=1) > 0).all(), name


@pytest.mark.parametrize("channels", [0, 7])
def test_an_odd_number_of_channels_is_unsupported(channels: int) -> None:
    with pytest.raises(Unsupported, match="even"):
        build(f"transformer_xl(channels={channels})", Site(H * D, H, H, D, 64, 64))
