"""Flex: torch's FlexAttention, compiled, with the bias as a function of a score and its place.

Shapes: B batch, H query heads, T queries, S keys, D head channels.
"""

from collections.abc import Callable, Sequence
from importlib.util import find_spec

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from grape_bench.backends import Backend, Mask
from grape_bench.bias import Bias, LowRank, Toeplitz
from grape_bench.compiler import require_compiler
from grape_bench.errors import Unsupported

_Mod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]  # of a score, batch, head, query and key
_BLOCK = 128  # rows and columns of a block that is skipped whole
_CHANNELS = 64  # of a finite rank: each is two more reads a score
_RECOMPILATIONS = 1024  # for all biases and shapes of a process, which share one limit; torch's own is 8
_UNCOMPILED = "torch would have run FlexAttention uncompiled, and built the whole matrix"


class Flex(Backend):
    """Let a compiled kernel add the bias to each score s as it goes along.

        Toeplitz: s + k[T - 1 - i + j],   LowRank: s + u_i . v_j,   Sum: one after the other

    Numbers are captured as tensors: a Python float would be compiled into the code, once for each value. Blocks of keys
    ahead are skipped, and the mask is asked within the others. Uncompiled, FlexAttention would build the whole matrix,
    so it is wrapped in a function that then raises.

    Raises:
        Unsupported: a bias of whole rows, of places that do not run in steps of one, or of very many channels; float64;
            gradients on a CPU; no compiler; or torch would have run it uncompiled.

    Source: Dong et al. 2024, arXiv:2412.05496; the functions: ours.
    """

    def __init__(self) -> None:
        self._kernel: Callable[..., Tensor] = torch.compile(_compiled_only, fullgraph=True, dynamic=False)

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, bias: Bias | None, mask: Mask, *, scale: float | None = None
    ) -> Tensor:
        _refuse(q, k, v, bias)
        k, v = mask.clean(k), mask.clean(v)
        if q.is_cpu:  # torch looks at the flag, whatever the mode
            q, k, v = q.detach(), k.detach(), v.detach()
        mods = [_mod(part, q.shape[1]) for part in bias.parts()] if bias is not None else []
        limits = {"recompile_limit": _RECOMPILATIONS, "accumulated_recompile_limit": _RECOMPILATIONS}
        with torch._dynamo.config.patch(limits):
            try:
                return self._kernel(q, k, v, mods, _blocks(mask, q, k), scale)
            except torch._dynamo.exc.FailOnRecompileLimitHit:
                raise Unsupported(_UNCOMPILED) from None


def _compiled_only(
    q: Tensor, k: Tensor, v: Tensor, mods: Sequence[_Mod], blocks: BlockMask | None, scale: float | None
) -> Tensor:
    if not torch.compiler.is_compiling():
        raise Unsupported(_UNCOMPILED)

    def all_of_them(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        for mod in mods:
            score = mod(score, b, h, i, j)
        return score

    return flex_attention(q, k, v, all_of_them, blocks, scale, enable_gqa=q.shape[1] != k.shape[1])


def _mod(bias: Bias, heads: int) -> _Mod:
    """What one part of a bias does to a score.

    Raises:
        Unsupported: it cannot be told from the place of one score.
    """
    if isinstance(bias, Toeplitz) and bias.values is not None:
        values, last = bias.values, bias.rows - 1
        return lambda score, b, h, i, j: score + values[h, last - i + j]
    if not isinstance(bias, LowRank):
        raise Unsupported("flex sees one score at a time, and takes finite ranks and distances in steps of one alone")
    u, v = bias.lift()
    if u.shape[-1] > _CHANNELS:
        raise Unsupported(f"{u.shape[-1]} channels are too many to read for each score; flex takes {_CHANNELS}")
    group = heads // v.shape[1]
    # Channel by channel: on CUDA a tensor that is read in two places gets no gradient.
    channels = [tuple(one.contiguous() for one in pair) for pair in zip(u.unbind(-1), v.unbind(-1), strict=True)]

    def add(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        for left, right in channels:
            score = score + left[b % left.shape[0], h, i] * right[b % right.shape[0], h // group, j]
        return score

    return add


def _refuse(q: Tensor, k: Tensor, v: Tensor, bias: Bias | None) -> None:
    if q.dtype == torch.float64:
        raise Unsupported("FlexAttention is not compiled in float64")
    if q.is_cuda:
        if find_spec("triton") is None:
            raise Unsupported("FlexAttention needs triton on CUDA, which is not installed")
        if q.shape[-1] < 16:
            raise Unsupported(f"FlexAttention wants a head_dim of at least 16 on CUDA, got {q.shape[-1]}")
        return
    asked = torch.is_grad_enabled() and any(one.requires_grad for one in (q, k, v))
    if asked or (bias is not None and bias.learned):
        raise Unsupported("FlexAttention has no gradients on a CPU")
    require_compiler("cpu")


def _blocks(mask: Mask, q: Tensor, k: Tensor) -> BlockMask | None:
    """The mask, and which blocks of keys each block of queries meets: made without a matrix of all pairs."""
    causal, keys, documents = mask.causal, mask.keys, mask.documents
    if not causal and keys is None and documents is None:
        return None
    T, S = q.shape[-2], k.shape[-2]
    first = S - T

    def visible(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        seen = i + first >= j if causal else j >= 0
        if keys is not None:
            seen = seen & keys[b, j]
        if documents is not None:
            seen = seen & (documents[b, i + first] == documents[b, j])
        return seen

    rows, cols = -(-T // _BLOCK), -(-S // _BLOCK)
    ends = (torch.arange(1, rows + 1, dtype=torch.int32, device=q.device) * _BLOCK).clamp(max=T) + first
    counts = (ends + _BLOCK - 1) // _BLOCK if causal else torch.full_like(ends, cols)
    order = torch.arange(cols, dtype=torch.int32, device=q.device).expand(1, 1, rows, cols)
    return BlockMask.from_kv_blocks(
        counts[None, None], order.contiguous(), BLOCK_SIZE=_BLOCK, mask_mod=visible, seq_lengths=(T, S)
    )


PLUGIN = Flex
