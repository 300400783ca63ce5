"""Sinusoidal against the formula number by number in float64."""

import math

import pytest
import torch
from torch import Tensor

from grape_bench.backends.eager import Eager
from grape_bench.cell import ModelOptions
from grape_bench.encodings import Encoding, Site, build
from grape_bench.errors import Unsupported
from grape_bench.model import Transformer


def sinusoidal(width: int, base: float = 10_000) -> Encoding:
    return build(f"sinusoidal(base={base})", Site(width, 1, 1, width, 64, 64))


def rows(positions: list[float], width: int, base: float = 10_000, dtype: torch.dtype = torch.float64) -> Tensor:
    """What is added at each position, (T, C)."""
    at = torch.tensor(positions)
    return sinusoidal(width, base).embed(torch.zeros(1, len(positions), width, dtype=dtype), at)[0]


@pytest.mark.parametrize(("width", "base"), [(2, 10_000), (8, 10_000), (12, 500)])
def test_even_channels_are_sines_and_odd_ones_cosines(width: int, base: float) -> None:
    positions = [0, 1, 5, 300]
    got = rows(positions, width, base)
    for t, position in enumerate(positions):
        for channel in range(width):
            angle = position / base ** (2 * (channel // 2) / width)
            expected = math.cos(angle) if channel % 2 else math.sin(angle)
            assert got[t, channel].item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("width", [8, 64])
def test_the_longest_wave_is_that_of_the_last_pair(width: int) -> None:
    """2 pi base^((C - 2) / C): a spectrum with another exponent trains anyway, and is another encoding."""
    period = 2 * math.pi * 10_000 ** ((width - 2) / width)
    got = rows([0.0, period / 4, period / 2], width)[:, -2:]
    expected = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0]], dtype=torch.float64)
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-6)  # `torch.tensor` holds positions in float32
    torch.testing.assert_close(rows([0.0, 2 * math.pi], width)[1, :2], rows([0.0], width)[0, :2], rtol=0, atol=1e-6)


def test_every_position_has_its_own_row() -> None:
    got = rows(list(range(2000)), 16)
    assert len({tuple(row) for row in got.tolist()}) == 2000


def test_rows_are_added_to_the_tokens() -> None:
    x = torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    at = torch.tensor([[0, 1, 2], [7, 8, 9]])
    got = sinusoidal(8).embed(x, at)
    for b in range(2):
        torch.testing.assert_close(got[b] - x[b], rows([float(one) for one in at[b]], 8), rtol=0, atol=1e-12)


def test_float32_angles_stay_exact_at_large_positions() -> None:
    exact = rows([100_000.0], 32)
    torch.testing.assert_close(rows([100_000.0], 32, dtype=torch.float32).double(), exact, rtol=0, atol=8e-3)
    torch.testing.assert_close(rows([100_000.0], 32, dtype=torch.bfloat16).double(), exact, rtol=0, atol=1.2e-2)


@torch.no_grad()
def test_padding_on_the_left_is_felt_unless_positions_count_from_the_first_real_token() -> None:
    options = ModelOptions(width=16, layers=1, heads=2, causal=True)
    model = Transformer(options, "sinusoidal", Eager(), vocabulary=11, answers=5, lengths=(16, 16))
    model.reset(0)
    given = torch.arange(7)[None] % 11
    padded = torch.cat((torch.zeros(1, 5, dtype=torch.long), given), dim=1)
    keys = torch.arange(12)[None] >= 5
    expected = model(given)
    counted = model(padded, keys=keys, positions=(keys.long().cumsum(dim=1) - 1).clamp(min=0))[:, 5:]
    torch.testing.assert_close(counted, expected, rtol=0, atol=1e-5)
    assert (model(padded, keys=keys)[:, 5:] - expected).abs().max() > 0.1


@pytest.mark.parametrize(("width", "base"), [(7, 10_000), (8, 0), (8, -10)])
def test_an_odd_width_and_a_base_without_a_spectrum_are_unsupported(width: int, base: float) -> None:
    with pytest.raises(Unsupported, match=f"got {width} and {base}"):
        sinusoidal(width, base)
