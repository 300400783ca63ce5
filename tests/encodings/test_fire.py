"""FIRE against its network worked out pair by pair in plain numbers."""

import math

import pytest
import torch
from torch import Tensor

from grape_bench.bias import Rowwise
from grape_bench.encodings import At, Site, build
from grape_bench.encodings.fire import Fire
from grape_bench.errors import Unsupported

HEADS, WIDTH = 3, 5


def fire(options: str = "threshold=6", *, causal: bool = True, train_length: int = 64) -> Fire:
    encoding = build(f"fire(width={WIDTH}, {options})", Site(12, HEADS, HEADS, 4, train_length, 64, causal=causal))
    assert isinstance(encoding, Fire)
    encoding.reset(torch.Generator().manual_seed(0))
    return encoding.double()


def tile(encoding: Fire, q_pos: Tensor, k_pos: Tensor) -> Tensor:
    q = torch.zeros(1, HEADS, q_pos.shape[-1], 4, dtype=torch.float64)
    made = encoding.bias(q, None, At(q, q_pos, k_pos, uniform=False))
    assert isinstance(made, Rowwise)
    return made.tile()[0]


def value(encoding: Fire, h: int, i: float, j: float, threshold: float) -> float:
    """f(log(1 + c |i - j|) / log(1 + c max(i, L))), the network unit by unit."""
    c = encoding.c.item()
    share = math.log(1 + c * abs(i - j)) / (math.log(1 + c * max(i, threshold)) + 1e-6)
    total = encoding.second_shift[h].item()
    for n in range(WIDTH):
        hidden = max(0.0, encoding.first[n].item() * share + encoding.first_shift[n].item())
        total += encoding.second[h, n].item() * hidden
    return total


@pytest.mark.parametrize("causal", [True, False])
def test_the_bias_is_the_network_of_the_share_of_the_way_back(causal: bool) -> None:
    encoding = fire(causal=causal)
    got = tile(encoding, torch.arange(12), torch.arange(12))
    for h in range(HEADS):
        for i in range(12):
            for j in range(12):
                assert got[h, i, j].item() == pytest.approx(value(encoding, h, i, j, 6.0), abs=1e-12)


def test_positions_of_a_batch_and_real_ones_have_their_own_values() -> None:
    encoding, at = fire(), torch.tensor([[0.5, 9.25], [30.0, 31.5]], dtype=torch.float64)
    q = torch.zeros(2, HEADS, 2, 4, dtype=torch.float64)
    got = encoding.bias(q, None, At(q, at, at, uniform=False)).tile()
    for b in range(2):
        for i in range(2):
            for j in range(2):
                expected = value(encoding, 1, at[b, i].item(), at[b, j].item(), 6.0)
                assert got[b, 1, i, j].item() == pytest.approx(expected, abs=1e-12)


def test_an_early_row_does_not_change_as_the_sequence_grows() -> None:
    encoding = fire()
    short, long = (tile(encoding, torch.arange(n), torch.arange(n)) for n in (9, 30))
    torch.testing.assert_close(long[:, :9, :9], short, rtol=0, atol=0)


def test_below_the_threshold_it_is_a_function_of_the_distance_and_beyond_it_is_not() -> None:
    encoding = fire()
    got = tile(encoding, torch.arange(20), torch.arange(20))
    near = torch.stack([got[:, i, i - 2] for i in range(2, 7)])
    far = torch.stack([got[:, i, i - 2] for i in range(7, 20)])
    assert (near - near[0]).abs().max() < 1e-12
    assert (far - far[0]).abs().max() > 1e-3


def test_all_rows_see_the_whole_range_of_shares_beyond_the_threshold() -> None:
    """The first key is at share 1 from every row, however long the sequence: nothing is out of range."""
    got = tile(fire(), torch.tensor([10, 100, 100_000]), torch.tensor([0]))
    torch.testing.assert_close(got[:, 1:], got[:, :1].expand(-1, 2, -1), rtol=0, atol=1e-5)


def test_the_threshold_starts_at_half_the_training_length() -> None:
    for length in (64, 256):
        encoding = fire("heads='own'", train_length=length)
        got = tile(encoding, torch.tensor([3, length - 1]), torch.tensor([0, 1]))
        assert got[0, 0, 0].item() == pytest.approx(value(encoding, 0, 3, 0, length / 2), abs=1e-12)
        assert got[0, 1, 1].item() == pytest.approx(value(encoding, 0, length - 1, 1, length / 2), abs=1e-12)


def test_every_parameter_has_a_gradient() -> None:
    encoding = fire()
    tile(encoding, torch.arange(12), torch.arange(12)).pow(2).sum().backward()
    for name, one in encoding.named_parameters():
        assert one.grad is not None, name
        assert one.grad.abs().max() > 0, name


@pytest.mark.parametrize("options", ["threshold=0.5", "threshold=-3"])
def test_a_threshold_below_one_token_is_unsupported(options: str) -> None:
    with pytest.raises(Unsupported, match="threshold"):
        fire(options)
