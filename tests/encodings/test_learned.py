"""Learned against a look-up written out."""

import pytest
import torch

from grape_bench.encodings import Site, build
from grape_bench.encodings.learned import Learned
from grape_bench.errors import Unsupported


def learned(options: str = "", longest: int = 10) -> Learned:
    encoding = build(f"learned({options})", Site(6, 1, 1, 6, 8, longest))
    assert isinstance(encoding, Learned)
    encoding.reset(torch.Generator().manual_seed(0))
    return encoding


def test_the_row_of_its_position_is_added_to_each_token() -> None:
    encoding = learned().double()
    x = torch.randn(2, 3, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    at = torch.tensor([[0, 1, 2], [9, 3, 3]])
    got = encoding.embed(x, at)
    for b in range(2):
        for t in range(3):
            for c in range(6):
                expected = x[b, t, c].item() + encoding.table[at[b, t], c].item()
                assert got[b, t, c].item() == pytest.approx(expected, abs=1e-12)


def test_the_table_has_a_row_for_the_longest_sequence_and_no_more() -> None:
    encoding = learned(longest=17)
    assert encoding.table.shape == (17, 6)
    with pytest.raises(IndexError):
        encoding.embed(torch.zeros(1, 1, 6), torch.tensor([17]))


def test_a_negative_position_is_no_row_from_the_end() -> None:
    with pytest.raises(IndexError):
        learned().embed(torch.zeros(1, 1, 6), torch.tensor([-1]))


@pytest.mark.parametrize(("options", "std"), [("", 0.3), ("std=0.02", 0.02)])
def test_it_starts_at_random_with_the_given_spread(options: str, std: float) -> None:
    table = learned(options, longest=4000).table
    assert table.std().item() == pytest.approx(std, rel=0.03)
    assert table.mean().item() == pytest.approx(0.0, abs=std / 20)


def test_only_rows_that_were_seen_have_a_gradient() -> None:
    encoding = learned()
    encoding.embed(torch.zeros(1, 3, 6), torch.tensor([1, 1, 4])).sum().backward()
    assert encoding.table.grad is not None
    assert encoding.table.grad[:, 0].tolist() == [0, 2, 0, 0, 1, 0, 0, 0, 0, 0]


def test_a_start_of_negative_width_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="std must be at least 0"):
        learned("std=-0.5")
