"""ALiBi's slopes, for any number of heads."""

import math

import torch
from torch import Tensor


def slopes(heads: int, *, dtype: torch.dtype = torch.float64) -> Tensor:
    """The official slopes (H,): a geometric row for a power of two, every second one of the next for the rest.

        m_h = 2^(-8 (h + 1) / H)   for H a power of two, in float64

    Source: Press et al. 2021, arXiv:2108.12409, section 3, and its published code for other numbers of heads.
    """
    whole = 2 ** math.floor(math.log2(heads))
    row = _row(whole)
    return torch.cat((row, _row(2 * whole)[::2][: heads - whole])).to(dtype)


def _row(heads: int) -> Tensor:
    return 2.0 ** (-8.0 / heads * torch.arange(1, heads + 1, dtype=torch.float64))
