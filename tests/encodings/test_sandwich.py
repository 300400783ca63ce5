"""Sandwich against its sum of cosines, and against inner products of sinusoidal vectors, in float64."""

import math

import pytest
import torch
from torch import Tensor

from grape_bench.bias import LowRank
from grape_bench.encodings import At, Site, build
from grape_bench.encodings.sandwich import Sandwich
from grape_bench.errors import Unsupported


def sandwich(heads: int = 4, width: int = 8) -> Sandwich:
    encoding = build(f"sandwich(width={width})", Site(4 * heads, heads, heads, 4, 64, 64))
    assert isinstance(encoding, Sandwich)
    return encoding


def bias(encoding: Sandwich, q_pos: Tensor, k_pos: Tensor, dtype: torch.dtype = torch.float64) -> LowRank:
    q = torch.zeros(1, encoding.heads, len(q_pos), 4, dtype=dtype)
    made = encoding.bias(q, None, At(q, q_pos, k_pos, uniform=False))
    assert isinstance(made, LowRank)
    return made


def test_the_plain_sum_at_distance_three_of_eight_channels_is_the_known_number() -> None:
    """H = 8 makes the first head's ratio 1: cos 3 + cos 0.3 + cos 0.03 + cos 0.003."""
    got = bias(sandwich(8), torch.tensor([3, 10_003]), torch.tensor([0, 10_000])).tile()[0]
    assert got[0, 0, 0].item() == pytest.approx(1.96489, abs=5e-6)
    assert got[0, 1, 1].item() == pytest.approx(1.96489, abs=5e-6)


@pytest.mark.parametrize(("heads", "width"), [(1, 2), (3, 8), (6, 20)])
def test_the_bias_is_the_compressed_sum_of_cosines(heads: int, width: int) -> None:
    got = bias(sandwich(heads, width), torch.arange(7) + 500, torch.arange(9) + 497).tile()[0]
    for h in range(heads):
        for i in range(7):
            for j in range(9):
                far = i + 3 - j
                total = sum(math.cos(far / 10_000 ** (2 * m / width)) for m in range(width // 2))
                assert got[h, i, j].item() == pytest.approx(total / (8 * (h + 1) / heads), abs=1e-10)


def test_it_is_the_inner_product_of_sinusoidal_vectors() -> None:
    table = build("sinusoidal", Site(12, 1, 1, 12, 64, 64)).embed(torch.zeros(1, 9, 12).double(), torch.arange(9))[0]
    got = bias(sandwich(8, 12), torch.arange(9), torch.arange(9)).tile()[0, 0]
    torch.testing.assert_close(got, table @ table.T, rtol=0, atol=1e-12)


def test_it_lifts_to_its_width_and_nothing_is_left() -> None:
    made = bias(sandwich(4, 10), torch.arange(6), torch.arange(6))
    u, v = made.lift()
    assert u.shape[-1] == v.shape[-1] == 10
    torch.testing.assert_close(u @ v.transpose(-1, -2), made.tile(), rtol=0, atol=1e-12)


def test_the_width_is_the_papers_by_default_and_nothing_is_learned() -> None:
    encoding = build("sandwich", Site(16, 4, 4, 4, 64, 64))
    assert isinstance(encoding, Sandwich)
    assert encoding.width == 128
    assert not list(encoding.parameters())


def test_float32_is_as_exact_far_from_the_origin_as_at_it() -> None:
    exact = bias(sandwich(), torch.arange(40), torch.arange(40)).tile()
    far = torch.arange(40) + 1_000_000
    torch.testing.assert_close(bias(sandwich(), far, far, torch.float32).tile().double(), exact, rtol=0, atol=1e-4)


@pytest.mark.parametrize("width", [0, 7])
def test_an_odd_width_is_unsupported(width: int) -> None:
    with pytest.raises(Unsupported, match="even"):
        sandwich(width=width)
