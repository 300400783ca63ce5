"""Eager: every step written out, in the dtype of its inputs. With float64 inputs it is the oracle."""

import torch
from torch import Tensor

from grape_bench.backends import Backend, Mask
from grape_bench.bias import Bias

_NEVER = float("-inf")


class Eager(Backend):
    """Materialise the scores, and add, mask and normalise them one step at a time."""

    dense = True

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, bias: Bias | None, mask: Mask, *, scale: float | None = None
    ) -> Tensor:
        groups = q.shape[1] // k.shape[1]
        k, v = (mask.clean(one).repeat_interleave(groups, dim=1) for one in (k, v))
        if bias is not None and bias.reads_scores:  # what is made of scores may jump where they are rounded
            q, k = (one.to(torch.promote_types(one.dtype, torch.float32)) for one in (q, k))
        scores = (q @ k.transpose(-1, -2)) * (q.shape[-1] ** -0.5 if scale is None else scale)
        if bias is not None:
            scores = scores + bias.tile(scores=scores if bias.reads_scores else None)
        visible = mask.visible(q.shape[-2], k.shape[-2], q.device)
        if visible is not None:
            scores = scores.masked_fill(~visible, _NEVER)
        if mask.keys is None:
            return scores.softmax(dim=-1).to(v.dtype) @ v
        scores = scores.masked_fill(~mask.keys[:, None, None], _NEVER)
        blind = (scores == _NEVER).all(dim=-1, keepdim=True)
        weights = scores.masked_fill(blind, 0.0).softmax(dim=-1).masked_fill(blind, 0.0)
        return weights.to(v.dtype) @ v


PLUGIN = Eager
