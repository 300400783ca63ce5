"""The bias as most users have it today: a matrix."""

import pytest
import torch

from grape_bench.backends import Mask, load, noting
from grape_bench.bias import LowRank, Toeplitz
from grape_bench.memory import peak


def test_the_bias_of_the_article_takes_512_mib() -> None:
    """Claim C6: 32 heads at 2048 tokens in float32."""
    at = torch.arange(2048)
    table = Toeplitz(lambda far, m: m[:, None] * far, [torch.ones(32)], at, at, uniform=True)
    assert peak(table.dense, "cpu").peak_mib == pytest.approx(512, rel=0.01)


def test_a_mask_that_learns_is_said_to_be_unfused() -> None:
    q, k, v = (torch.randn(1, 2, 5, 4, generator=torch.Generator().manual_seed(seed)) for seed in range(3))
    for learns in (False, True):
        bias = LowRank(torch.ones(1, 2, 5, 1).requires_grad_(learns), torch.ones(1, 1, 5, 1))
        with noting() as notes:
            load("sdpa").attend(q, k, v, bias, Mask())
        assert bool(notes) is learns
