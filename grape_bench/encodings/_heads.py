"""Which heads share a row of a learned table."""

from typing import Literal

import torch
from torch import Tensor

Sharing = Literal["own", "shared", "half"]


def rows_of(heads: int, sharing: Sharing) -> Tensor:
    """The row of the table that each head reads, (H,).

    `own` gives each head a row, `shared` one row to all; with `half` the first H // 2 heads share a row, and each of
    the others has its own.

    Source: ours; the three choices are those of the article on GRAPE.
    """
    if sharing == "own":
        return torch.arange(heads)
    if sharing == "shared":
        return torch.zeros(heads, dtype=torch.long)
    return (torch.arange(heads) - max(heads // 2, 1) + 1).clamp(min=0)
