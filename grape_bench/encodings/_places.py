"""Where queries stand among the keys: they are the last of them, whatever their positions."""

import torch
from torch import Tensor


def ahead(rows: slice, queries: int, keys: int, device: torch.device) -> Tensor:
    """(R, S): True at keys that come after the query of a row, for some rows of T queries among S keys."""
    place = torch.arange(keys - queries, keys, device=device)[rows]
    return torch.arange(keys, device=device) > place[:, None]
