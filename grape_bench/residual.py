"""How far a law is from holding, as one number."""

import torch
from torch import Tensor

_HUGE = 1e9  # stands for infinity, and for what is no number


def largest(entries: Tensor) -> float:
    """The largest absolute value; infinities, and what is no number, count as huge."""
    return min(entries.nan_to_num(nan=_HUGE, posinf=_HUGE, neginf=-_HUGE).abs().max().item(), _HUGE)


def gap(given: Tensor, exact: Tensor) -> float:
    """Between outputs, which must be numbers on both sides."""
    return ratio((given - exact).nan_to_num(nan=torch.inf, posinf=torch.inf, neginf=-torch.inf), exact)


def past_gap(given: Tensor, exact: Tensor) -> float:
    """Between biases (..., N, N) at past keys and the query's own."""
    future = torch.ones(exact.shape[-2:]).triu(1).bool()
    return ratio((given - exact).masked_fill(future, 0.0), exact.masked_fill(future, 0.0))


def ratio(difference: Tensor, scale: Tensor) -> float:
    """The largest difference over the largest finite entry of the scale.

    What is no number is passed over in both: inf - inf, where a bias hides a key on either side.
    """
    unit = scale.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().item()
    return min(largest(difference.nan_to_num(nan=0.0, posinf=torch.inf, neginf=-torch.inf)) / (unit or 1.0), _HUGE)
