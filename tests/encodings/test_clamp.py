"""Clamp against a look-up written out."""

import pytest
import torch

from grape_bench.encodings import At, Site, build
from grape_bench.encodings.clamp import Clamp


def clamp(options: str = "", train_length: int = 64) -> Clamp:
    encoding = build(f"clamp({options})", Site(16, 4, 4, 4, train_length, 64))
    assert isinstance(encoding, Clamp)
    return encoding


@pytest.mark.parametrize("uniform", [True, False])
def test_the_bias_reads_the_table_at_the_clipped_distance(uniform: bool) -> None:
    encoding = clamp("window=3").double()
    with torch.no_grad():
        encoding.table.copy_(torch.arange(28.0).reshape(4, 7))
    q = torch.zeros(1, 4, 9, 4, dtype=torch.float64)
    bias = encoding.bias(q, None, At(q, torch.arange(9), torch.arange(9), uniform))
    assert bias is not None
    for h in range(4):
        for i in range(9):
            for j in range(9):
                assert bias.tile()[0, h, i, j].item() == 7 * h + max(-3, min(3, i - j)) + 3


def test_the_window_is_the_training_length_by_default() -> None:
    assert clamp(train_length=48).table.shape == (4, 97)
    assert clamp("window=5", train_length=48).table.shape == (4, 11)


def test_it_starts_as_no_bias_at_all() -> None:
    assert not clamp().table.any()


def test_real_positions_take_the_nearest_whole_distance() -> None:
    encoding = clamp("window=2")
    with torch.no_grad():
        encoding.table.copy_(torch.arange(5.0).expand(4, -1))
    q = torch.zeros(1, 4, 1, 4)
    at = At(q, torch.tensor([0.0]), torch.tensor([-0.4, -0.6, 1.4, 7.5]), uniform=False)
    bias = encoding.bias(q, None, at)
    assert bias is not None
    assert bias.tile()[0, 0, 0].tolist() == [2.0, 3.0, 1.0, 0.0]
