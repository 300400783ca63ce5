"""Features of query heads that are kept beside key heads: with H = g kv_heads, one carries those of its g."""

import torch
from torch import Tensor


def pack(x: Tensor, kv_heads: int) -> Tensor:
    """(B, H, S, r) of query heads as (B, kv_heads, S, g r) of key heads."""
    packed: Tensor = x.unflatten(1, (kv_heads, -1)).transpose(2, 3).flatten(-2)
    return packed


def unpack(features: Tensor, heads: int) -> Tensor:
    """(B, kv_heads, S, g r) of key heads as (B, H, S, r) of query heads."""
    groups = heads // features.shape[1]
    unpacked: Tensor = features.unflatten(-1, (groups, -1)).transpose(2, 3).flatten(1, 2)
    return unpacked


def own(heads: int, like: Tensor) -> Tensor:
    """(H, 1, g): a one for each query head at its own of the g features (B, kv_heads, S, g) of its key head."""
    groups = like.shape[-1]
    return torch.eye(groups, dtype=like.dtype, device=like.device).repeat(heads // groups, 1)[:, None]
