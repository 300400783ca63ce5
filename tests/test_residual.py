"""Residuals of matrices small enough to read."""

import math

import pytest
import torch

from grape_bench.residual import gap, largest, past_gap, ratio

INF, NAN = math.inf, math.nan


@pytest.mark.parametrize(("entries", "found"), [([3, -4], 4), ([1, NAN], 1e9), ([-INF, 1], 1e9), ([1e12], 1e9)])
def test_what_is_no_number_counts_as_huge(entries: list[float], found: float) -> None:
    assert largest(torch.tensor(entries, dtype=torch.float64)) == found


@pytest.mark.parametrize(
    ("difference", "scale", "found"),
    [
        ([1, -2], [4, -8], 0.25),
        ([1, NAN], [4, -INF], 0.25),  # a wall on both sides
        ([1, -INF], [4, -INF], 2.5e8),  # a wall on one
        ([3], [0], 3),
        ([NAN], [NAN], 0),
    ],
)
def test_a_residual_is_relative_to_the_largest_finite_entry(
    difference: list[float], scale: list[float], found: float
) -> None:
    assert ratio(*(torch.tensor(one, dtype=torch.float64) for one in (difference, scale))) == found


def test_outputs_that_are_no_numbers_agree_with_nothing() -> None:
    exact = torch.tensor([[2.0, 4.0]])
    assert gap(exact + torch.tensor([0.0, 1.0]), exact) == 0.25
    for bad in (NAN, INF):
        assert gap(torch.tensor([[2.0, bad]]), exact) > 1e8
        assert gap(torch.tensor([[2.0, bad]]), torch.tensor([[2.0, bad]])) > 1e8


def test_biases_are_compared_at_past_keys_alone() -> None:
    exact = torch.tensor([[1.0, 7.0], [2.0, 4.0]])
    future, past = exact.clone(), exact.clone()
    future[0, 1], past[1, 0] = INF, 3.0
    assert (past_gap(future, exact), past_gap(past, exact)) == (0, 0.25)
