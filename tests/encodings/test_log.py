"""Log against the formula number by number in float64."""

import math

import pytest
import torch

from grape_bench.encodings import At, Site, build
from grape_bench.encodings.log import Log

WEIGHTS = [[0.5, 0.25], [-1.0, 0.0], [0.0, 2.0]]  # a, c of each head


def log() -> Log:
    encoding = build("log", Site(12, 3, 3, 4, 64, 64)).double()
    assert isinstance(encoding, Log)
    with torch.no_grad():
        encoding.weights.copy_(torch.tensor(WEIGHTS))
    return encoding


def value(h: int, distance: float) -> float:
    a, c = WEIGHTS[h]
    side = a + c if distance > 0 else a - c
    return side * math.log(1 + abs(distance))


@pytest.mark.parametrize("uniform", [True, False])
def test_each_side_has_its_own_multiple_of_the_logarithm(uniform: bool) -> None:
    q, at = torch.zeros(1, 3, 7, 4, dtype=torch.float64), torch.arange(7) + 900
    tile = log().bias(q, None, At(q, at, at, uniform)).tile()[0]
    for h in range(3):
        for i in range(7):
            for j in range(7):
                assert tile[h, i, j].item() == pytest.approx(value(h, i - j), abs=1e-12)


def test_real_distances_have_their_own_value() -> None:
    q = torch.zeros(1, 3, 1, 4, dtype=torch.float64)
    keys = torch.tensor([0.25, 7.5, -3.75], dtype=torch.float64)
    tile = log().bias(q, None, At(q, torch.tensor([1.5], dtype=torch.float64), keys, uniform=False)).tile()[0]
    for h in range(3):
        for j, key in enumerate(keys.tolist()):
            assert tile[h, 0, j].item() == pytest.approx(value(h, 1.5 - key), abs=1e-12)


def test_it_starts_as_no_bias_at_all_and_learns_from_the_first_step() -> None:
    encoding = build("log", Site(12, 3, 3, 4, 64, 64))
    assert isinstance(encoding, Log)
    q, at = torch.zeros(1, 3, 5, 4), torch.arange(5)
    tile = encoding.bias(q, None, At(q, at, at, uniform=True)).tile()
    assert not tile.any()
    (tile * torch.arange(25.0).reshape(5, 5)).sum().backward()
    grad = encoding.weights.grad
    assert grad is not None
    pairs = [(i, j) for i in range(5) for j in range(5)]
    a = sum((5 * i + j) * math.log(1 + abs(i - j)) for i, j in pairs)
    c = sum((5 * i + j) * math.copysign(math.log(1 + abs(i - j)), i - j) for i, j in pairs)
    for h in range(3):
        assert grad[h].tolist() == pytest.approx([a, c], rel=1e-5)
