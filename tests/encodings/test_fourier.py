"""Fourier against its sum of waves in float64."""

import math

import pytest
import torch
from torch import Tensor

from grape_bench.bias import LowRank
from grape_bench.encodings import At, Site, build
from grape_bench.encodings.fourier import Fourier
from grape_bench.errors import Unsupported

HEADS = 3


def fourier(periods: int = 5, train_length: int = 32) -> Fourier:
    encoding = build(f"fourier(periods={periods})", Site(12, HEADS, HEADS, 4, train_length, 64))
    assert isinstance(encoding, Fourier)
    generator = torch.Generator().manual_seed(periods)
    with torch.no_grad():
        encoding.amplitude.copy_(torch.randn(encoding.amplitude.shape, generator=generator))
    return encoding


def bias(encoding: Fourier, q_pos: Tensor, k_pos: Tensor, dtype: torch.dtype = torch.float64) -> LowRank:
    q = torch.zeros(1, HEADS, q_pos.shape[-1], 4, dtype=dtype)
    made = encoding.bias(q, None, At(q, q_pos, k_pos, uniform=False))
    assert isinstance(made, LowRank)
    return made


def wave(encoding: Fourier, h: int, distance: float) -> float:
    """sum_m a cos(w d) + c sin(w d), periods log-spaced from 4 to 16 training lengths of 32."""
    count, total = encoding.amplitude.shape[-1], 0.0
    for m in range(count):
        period = 4.0 * (16 * 32 / 4.0) ** (m / (count - 1))
        a, c = encoding.amplitude[h, :, m].tolist()
        total += a * math.cos(2 * math.pi * distance / period) + c * math.sin(2 * math.pi * distance / period)
    return total


@pytest.mark.parametrize("start", [0, 10_000])
def test_the_bias_is_the_sum_of_waves(start: int) -> None:
    encoding = fourier().double()
    got = bias(encoding, torch.arange(6) + start, torch.arange(9) + start).tile()[0]
    for h in range(HEADS):
        for i in range(6):
            for j in range(9):
                assert got[h, i, j].item() == pytest.approx(wave(encoding, h, i - j), abs=1e-9)


def test_real_positions_have_their_own_value() -> None:
    encoding = fourier().double()
    got = bias(encoding, torch.tensor([0.25], dtype=torch.float64), torch.tensor([7.5], dtype=torch.float64))
    for h in range(HEADS):
        assert got.tile()[0, h, 0, 0].item() == pytest.approx(wave(encoding, h, 0.25 - 7.5), abs=1e-9)


def test_left_and_right_differ() -> None:
    encoding = fourier().double()
    got = bias(encoding, torch.arange(4), torch.arange(4)).tile()[0]
    assert (got - got.transpose(-1, -2)).abs().max() > 0.1


def test_it_lifts_to_two_channels_a_wave() -> None:
    encoding = fourier(7).double()
    made = bias(encoding, torch.arange(6), torch.arange(6))
    u, v = made.lift()
    assert u.shape[-1] == v.shape[-1] == 14
    torch.testing.assert_close(u @ v.transpose(-1, -2), made.tile(), rtol=0, atol=1e-12)


def test_it_starts_as_no_bias_at_all() -> None:
    assert not build("fourier", Site(12, HEADS, HEADS, 4, 32, 64)).amplitude.any()


def test_float32_is_as_exact_far_from_the_origin_as_at_it() -> None:
    encoding = fourier()
    exact = bias(encoding.double(), torch.arange(40), torch.arange(40)).tile()
    encoding.float()
    far = torch.arange(40) + 1_000_000
    got = bias(encoding, far, far, torch.float32).tile()
    torch.testing.assert_close(got.double(), exact, rtol=0, atol=1e-4)


def test_the_gradient_of_an_amplitude_sums_its_wave_over_all_pairs() -> None:
    encoding = fourier().double()
    weight = torch.randn(HEADS, 4, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    (bias(encoding, torch.arange(4), torch.arange(5)).tile()[0] * weight).sum().backward()
    for h in range(HEADS):
        for m in range(5):
            w = 2 * math.pi / (4.0 * 128 ** (m / 4))
            pairs = [(i, j) for i in range(4) for j in range(5)]
            a = sum(weight[h, i, j].item() * math.cos(w * (i - j)) for i, j in pairs)
            c = sum(weight[h, i, j].item() * math.sin(w * (i - j)) for i, j in pairs)
            assert encoding.amplitude.grad is not None
            assert encoding.amplitude.grad[h, :, m].tolist() == pytest.approx([a, c], abs=1e-9)


@pytest.mark.parametrize("periods", [0, -1])
def test_no_wave_is_unsupported(periods: int) -> None:
    with pytest.raises(Unsupported, match="at least 1 period"):
        build(f"fourier(periods={periods})", Site(16, 2, 2, 8, 64, 64))
