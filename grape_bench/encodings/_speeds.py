"""Frequencies that are learned, and slowly."""

import torch
from torch import Tensor

from grape_bench.encodings._rotary import spectrum

_SLOWNESS = 16.0  # how many times less log w moves than what the optimizer moves


def stored_spectrum(size: int, base: float) -> Tensor:
    """What is learned in place of RoPE's frequencies w of r channels: 16 log w, (r/2,).

    Raises:
        Unsupported: r is odd, or the base is not above zero.

    Source: the published code of Zhang et al. 2025, arXiv:2512.07805.
    """
    return _SLOWNESS * torch.tensor(spectrum(size, base), dtype=torch.float64).log().float()


def speeds(stored: Tensor) -> Tensor:
    """The frequencies, always above zero, of what is learned."""
    return (stored / _SLOWNESS).exp()
