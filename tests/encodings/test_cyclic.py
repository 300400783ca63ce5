"""Cyclic against a look-up written out."""

import pytest
import torch

from grape_bench.encodings import At, Site, build
from grape_bench.encodings.cyclic import Cyclic
from grape_bench.errors import Unsupported


def cyclic(options: str = "", train_length: int = 64) -> Cyclic:
    encoding = build(f"cyclic({options})", Site(16, 4, 4, 4, train_length, 64))
    assert isinstance(encoding, Cyclic)
    return encoding


@pytest.mark.parametrize("uniform", [True, False])
@pytest.mark.parametrize("start", [0, 1001])
def test_the_bias_reads_the_table_at_the_distance_modulo_the_period(uniform: bool, start: int) -> None:
    encoding = cyclic("period=3").double()
    with torch.no_grad():
        encoding.table.copy_(torch.arange(12.0).reshape(4, 3))
    q, at = torch.zeros(1, 4, 9, 4, dtype=torch.float64), torch.arange(9) + start
    tile = encoding.bias(q, None, At(q, at, at, uniform)).tile()[0]
    turns = {-8: 1, -7: 2, -6: 0, -5: 1, -4: 2, -3: 0, -2: 1, -1: 2}
    for h in range(4):
        for i in range(9):
            for j in range(9):
                expected = turns[i - j] if i < j else (i - j) - 3 * ((i - j) // 3)
                assert tile[h, i, j].item() == 3 * h + expected


def test_distances_a_period_apart_are_one_also_far_beyond_training() -> None:
    encoding = cyclic("period=7").double()
    with torch.no_grad():
        encoding.table.normal_(generator=torch.Generator().manual_seed(0))
    q = torch.zeros(1, 4, 1, 4, dtype=torch.float64)
    at = At(q, torch.tensor([70_000]), torch.arange(70_000 - 20, 70_000), uniform=False)
    tile = encoding.bias(q, None, at).tile()
    torch.testing.assert_close(tile[..., 7:], tile[..., :-7], rtol=0, atol=0)
    assert (tile[..., 1:] - tile[..., :-1]).abs().min() > 1e-3


def test_the_period_is_the_training_length_by_default() -> None:
    assert cyclic(train_length=48).table.shape == (4, 48)
    assert cyclic("period=5", train_length=48).table.shape == (4, 5)


def test_it_starts_as_no_bias_at_all() -> None:
    assert not cyclic().table.any()


def test_real_positions_take_the_nearest_whole_distance() -> None:
    encoding = cyclic("period=4")
    with torch.no_grad():
        encoding.table.copy_(torch.arange(4.0).expand(4, -1))
    q = torch.zeros(1, 4, 1, 4)
    at = At(q, torch.tensor([0.0]), torch.tensor([-0.4, -0.6, 1.4, -6.5001]), uniform=False)
    assert encoding.bias(q, None, at).tile()[0, 0, 0].tolist() == [0.0, 1.0, 3.0, 3.0]


@pytest.mark.parametrize("period", [1, 0, -4])
def test_a_period_below_two_is_unsupported(period: int) -> None:
    with pytest.raises(Unsupported, match="period"):
        cyclic(f"period={period}")
