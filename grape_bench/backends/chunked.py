"""Chunked: exact attention a block of queries at a time, with gradients for whatever the bias is made of.

Shapes: B batch, H query heads, T queries, R of them in a block, S keys, D head channels.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from grape_bench.backends import Backend, Mask, note
from grape_bench.bias import Bias

_BUDGET_MIB = 4.0  # of 2^20 bytes: the scores of one block, all heads and sequences together
_FEWEST_ROWS = 16  # of a block, whatever the budget: products of fewer rows starve
_NEVER = float("-inf")


class Chunked(Backend):
    """Take the queries in blocks of rows I, each against the keys it may see, and hold no more scores than those.

        P = softmax(scale q_I k^T + b_I),   o_I = P v
        dP = do_I v^T,   dS = P (dP - rowsum(P dP)),   dq_I = scale dS k,   dk += scale dS^T q_I,   dv += P^T do_I

    A causal block ends at the key of its last query. Only the inputs are kept for backward, which makes each block
    anew; dS is the gradient of the bias's tile too, and autograd takes it to the leaves, so any `Bias` will do. Blocks
    hold whole rows: nothing is rescaled, and no log-sum-exp is kept. Half precision is computed in float32.

    Source: ours; recomputation as in Dao et al. 2022, arXiv:2205.14135, section 3.1.
    """

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, bias: Bias | None, mask: Mask, *, scale: float | None = None
    ) -> Tensor:
        if q.dtype.itemsize == 2:
            note("float32 inside")
        plan = _Plan(bias, mask, q.shape[-1] ** -0.5 if scale is None else scale)
        leaves = () if bias is None else bias.leaves()
        out: Tensor = _Attention.apply(plan, q, mask.clean(k), mask.clean(v), *leaves)  # type: ignore[no-untyped-call]
        return out


@dataclass(frozen=True)
class _Block:
    """Some rows and the keys they meet; queries that share keys are rows of one product.

    Args:
        first: place of the first query among the keys.
        shape: (B, H, R, keys).
        q: (B * kv_heads, R * H / kv_heads, D), scaled; k, v: (B * kv_heads, keys, D).
    """

    rows: slice
    first: int
    shape: tuple[int, int, int, int]
    q: Tensor
    k: Tensor
    v: Tensor

    @property
    def keys(self) -> int:
        return self.shape[-1]

    def scores(self) -> Tensor:
        """(B, H, R, keys), scaled."""
        return self.apart(self.q @ self.k.mT)

    def joined(self, x: Tensor) -> Tensor:
        """(B, H, R, n) in rows of one product, in the dtype of the computation."""
        return x.to(self.k.dtype).reshape(len(self.k), -1, x.shape[-1])

    def apart(self, x: Tensor) -> Tensor:
        """The reverse of `joined`."""
        return x.view(*self.shape[:-1], x.shape[-1])


@dataclass(frozen=True)
class _Plan:
    """Attention without its tensors."""

    bias: Bias | None
    mask: Mask
    scale: float

    @property
    def reads(self) -> bool:
        return self.bias is not None and self.bias.reads_scores

    def blocks(self, q: Tensor, k: Tensor, v: Tensor) -> Iterator[_Block]:
        """All rows, block by block; a bias that reads scores reads whole rows, so its blocks meet all keys."""
        wide = _wide(q)
        (B, H, T, D), S = q.shape, k.shape[-2]
        count = max(_FEWEST_ROWS, int(_BUDGET_MIB * 2**20 / (B * H * S * wide.itemsize)))
        whole = self.reads or not self.mask.causal
        k, v = (one.to(wide).flatten(0, 1) for one in (k, v))
        for start in range(0, T, count):
            rows = slice(start, min(start + count, T))
            keys = S if whole else S - T + rows.stop
            some = (q[:, :, rows].to(wide) * self.scale).reshape(len(k), -1, D)
            yield _Block(rows, S - T + start, (B, H, rows.stop - start, keys), some, k[:, :keys], v[:, :keys])

    def of(self, leaves: Sequence[Tensor]) -> "_Plan":
        """The same with the bias made of other leaves."""
        return replace(self, bias=None if self.bias is None else self.bias.with_leaves(leaves))

    def tile(self, block: _Block, scores: Tensor) -> Tensor | None:
        if self.bias is None:
            return None
        return self.bias.tile(block.rows, slice(0, block.keys), scores if self.reads else None)

    def weights(self, block: _Block, scores: Tensor, tile: Tensor | None) -> Tensor:
        """Softmax of scores, tile and mask, zeros in a row that sees no key. Without a tile it overwrites scores."""
        scores = scores if tile is None else scores.detach() + tile.detach()
        if self.mask.causal:
            ahead = scores[..., block.first :]
            ahead.masked_fill_(torch.ones(ahead.shape[-2:], dtype=torch.bool, device=ahead.device).triu(1), _NEVER)
        if self.mask.documents is not None:
            own = self.mask.documents[:, block.first : block.first + block.shape[2], None]
            scores.masked_fill_((own != self.mask.documents[:, None, : block.keys])[:, None], _NEVER)
        if self.mask.keys is None:
            return scores.softmax(dim=-1)
        scores.masked_fill_(~self.mask.keys[:, None, None, : block.keys], _NEVER)
        blind = scores.amax(dim=-1, keepdim=True) == _NEVER
        return scores.softmax(dim=-1).masked_fill_(blind, 0.0)

    def differentiate(self, block: _Block, slope: Tensor, learned: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Weights of a block and the gradient of its scores; that of its tile is added to `grad` of the leaves.

        Args:
            slope: gradient of the block's outputs, in rows of one product.
        """
        scores = block.scores().requires_grad_(self.reads)
        with torch.enable_grad():
            tile = self.tile(block, scores)
        weights, ds = self.weights(block, scores, tile), block.apart(slope @ block.v.mT)
        ds.sub_((ds * weights).sum(dim=-1, keepdim=True)).mul_(weights)
        if tile is not None and tile.requires_grad:
            tile.backward(ds.sum_to_size(tile.shape), inputs=[*learned, *[scores] * self.reads])
        return weights, ds if scores.grad is None else ds + scores.grad


class _Attention(torch.autograd.Function):
    """Chunked attention of q, k, v and the leaves of the bias."""

    @staticmethod
    def forward(ctx: Any, plan: _Plan, q: Tensor, k: Tensor, v: Tensor, *leaves: Tensor) -> Tensor:
        ctx.plan = plan
        ctx.save_for_backward(q, k, v, *leaves)
        out = q.new_empty(*q.shape[:-1], v.shape[-1])
        with torch.autocast(q.device.type, enabled=False):
            for block in plan.blocks(q, k, v):
                scores = block.scores()
                weights = plan.weights(block, scores, plan.tile(block, scores))
                out[:, :, block.rows] = block.apart(block.joined(weights) @ block.v)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, *leaves = ctx.saved_tensors
        own = [leaf.detach().requires_grad_(one) for leaf, one in zip(leaves, ctx.needs_input_grad[4:], strict=True)]
        plan, learned = ctx.plan.of(own), [leaf for leaf in own if leaf.requires_grad]
        dq = torch.empty_like(q)
        dk, dv = (one.new_zeros(one.shape, dtype=_wide(q)).flatten(0, 1) for one in (k, v))
        with torch.autocast(q.device.type, enabled=False):
            for block in plan.blocks(q, k, v):
                slope = block.joined(grad[:, :, block.rows])
                weights, ds = plan.differentiate(block, slope, learned)
                dv[:, : block.keys].baddbmm_(block.joined(weights).mT, slope)
                dk[:, : block.keys].baddbmm_(block.joined(ds).mT, block.q)
                dq[:, :, block.rows] = block.apart(block.joined(ds) @ block.k) * plan.scale
        return None, dq, dk.view(k.shape).to(k.dtype), dv.view(v.shape).to(v.dtype), *(leaf.grad for leaf in own)


def _wide(x: Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)


PLUGIN = Chunked
