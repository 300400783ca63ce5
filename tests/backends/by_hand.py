"""Biases of every kind, backends, and what these are held against: attention one query at a time in float64.

Shapes: B batch, H heads, T queries, S keys, D head channels.
"""

import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from grape_bench.backends import Mask, load
from grape_bench.bias import Bias, LowRank, Rowwise, Sum, Toeplitz
from grape_bench.errors import Unsupported
from grape_bench.registry import Registry

# It compiles for seconds at every shape: `tox -e flex` runs it.
COMPILED = pytest.mark.skipif("GRAPE_BENCH_FLEX" not in os.environ, reason="compiled, so tox -e flex runs it")
OUTSIDE = {"flash_alibi", "fla_fox"}  # for a GPU alone, which is not asked for here
NAMES = [name for name in Registry("backends") if name not in OUTSIDE]
BACKENDS = [pytest.param(name, marks=COMPILED if name == "flex" else ()) for name in NAMES]
B, H, D = 2, 4, 4

every = pytest.mark.parametrize("name", BACKENDS)


def draw(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def attend(name: str, qkv: Sequence[Tensor], bias: Bias | None, mask: Mask, scale: float | None = None) -> Tensor:
    """A backend that cannot do it must say so, which is a skip here as well."""
    try:
        return load(name).attend(*qkv, bias, mask, scale=scale)
    except Unsupported as reason:
        pytest.skip(str(reason))


def table_kernel(distance: Tensor, table: Tensor) -> Tensor:
    return table[:, distance.clamp(-3, 3) + 3]


def squares(rows: slice, scores: Tensor | None, gains: Tensor) -> Tensor:
    assert scores is not None
    return gains[:, None, None] * scores**2


def toeplitz(T: int, S: int) -> Bias:
    return Toeplitz(table_kernel, [draw(11, H, 7)], torch.arange(S - T, S), torch.arange(S), uniform=True)


def gathered(T: int, S: int) -> Bias:
    at = torch.stack((torch.arange(S), 2 * torch.arange(S)))
    return Toeplitz(table_kernel, [draw(11, H, 7)], at[:, S - T :], at, uniform=False)


def low_rank(T: int, S: int) -> Bias:
    return LowRank(draw(12, 1, H, T, 3), draw(13, 1, 2, S, 3), draw(14, 1, H, T, 1))


def product(rows: slice, scores: Tensor | None, left: Tensor, right: Tensor) -> Tensor:
    return (left[:, rows, None] * right[:, None, :].tanh())[None]


def growing(T: int, S: int) -> Bias:
    """Slopes times positions, of which only every second is even."""
    slopes, at = torch.tensor([0.5, 0.07, 0.011, 0.0037]).double()[:, None, None], torch.arange(S).double()[:, None]
    return LowRank(slopes.expand(H, T, 1)[None], (at - S // 2)[None, None], -slopes * at[None, S - T :])


def gates(T: int, S: int) -> Bias:
    """A running sum of gates that each key head has, as forgetting attention."""
    total = F.logsigmoid(draw(18, B, 2, S, 1)).cumsum(dim=2)
    return LowRank(torch.ones(1, H, T, 1).double(), -total, total.repeat_interleave(2, dim=1)[:, :, S - T :])


def window(T: int, S: int) -> Bias:
    return Toeplitz(walled, [draw(19, H)], torch.arange(S - T, S), torch.arange(S), uniform=True)


def walled(distance: Tensor, level: Tensor) -> Tensor:
    whole = level.reshape(-1, *[1] * distance.dim()).expand(-1, *distance.shape)
    return whole.masked_fill(distance.abs() >= 4, float("-inf"))


def rowwise(T: int, S: int) -> Bias:
    return Rowwise(product, [draw(15, H, T), draw(16, H, S)])


def reading(T: int, S: int) -> Bias:
    return Rowwise(squares, [draw(17, H)], reads_scores=True)


def total(T: int, S: int) -> Bias:
    return Sum([toeplitz(T, S), low_rank(T, S), rowwise(T, S)])


def liftable(T: int, S: int) -> Bias:
    return Sum([low_rank(T, S), Sum([window(T, S), growing(T, S)])])


MAKERS: dict[str, Callable[[int, int], Bias]] = {
    maker.__name__: maker
    for maker in (toeplitz, gathered, window, low_rank, growing, gates, rowwise, reading, liftable, total)
}
KINDS = ["nothing", *MAKERS]
FIXED = {"toeplitz", "window", "liftable"}  # where nothing learns, there is another way


def inputs(T: int, S: int, kv_heads: int = H) -> list[Tensor]:
    return [draw(1, B, H, T, D), draw(2, B, kv_heads, S, D), draw(3, B, kv_heads, S, D)]


def make_bias(kind: str, T: int, S: int) -> tuple[Bias | None, list[Tensor]]:
    """A bias made of leaves that take gradients."""
    if kind == "nothing":
        return None, []
    made = MAKERS[kind](T, S)
    leaves = [leaf.detach().clone().requires_grad_() for leaf in made.leaves()]
    return made.with_leaves(leaves), leaves


def by_hand(qkv: Sequence[Tensor], bias: Bias | None, mask: Mask, scale: float | None = None) -> Tensor:
    """Each query alone: scores of the keys it sees, in the order score, scale, bias, mask, softmax."""
    q, k, v = qkv
    T, S = q.shape[2], k.shape[2]
    scale = 1 / math.sqrt(q.shape[3]) if scale is None else scale
    outs, tile = [], None if bias is None or bias.reads_scores else bias.tile()
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            group = h * k.shape[1] // q.shape[1]
            whole = torch.stack([(k[b, group] * q[b, h, i]).sum(dim=-1) * scale for i in range(T)])
            if bias is not None and bias.reads_scores:
                every = torch.zeros(q.shape[0], q.shape[1], T, S, dtype=q.dtype)
                every[b, h] = whole
                tile = bias.tile(scores=every)
            added = None if tile is None else tile[min(b, len(tile) - 1), h]
            for i in range(T):
                seen = [j for j in range(S) if sees(mask, b, i + S - T, j)]
                row = whole[i, seen] if added is None else whole[i, seen] + added[i, seen]
                if not row.isfinite().any():
                    outs.append(torch.zeros_like(q[b, h, i]))
                    continue
                weights = (row - row.max().detach()).exp()
                outs.append((weights[:, None] * v[b, group, seen]).sum(dim=0) / weights.sum())
    return torch.stack(outs).reshape(q.shape)


def sees(mask: Mask, b: int, i: int, j: int) -> bool:
    """Whether the query at place i of the keys sees key j."""
    known = mask.keys is None or bool(mask.keys[b, j])
    own = mask.documents is None or bool(mask.documents[b, i] == mask.documents[b, j])
    return known and own and (not mask.causal or j <= i)


def padded(S: int) -> Tensor:
    keys = torch.ones(B, S, dtype=torch.bool)
    keys[0, :2], keys[1, -1] = False, False
    return keys


def gradients(out: Tensor, leaves: list[Tensor]) -> list[Tensor]:
    direction = draw(21, *out.shape).to(out.dtype)
    return list(torch.autograd.grad(out, leaves, direction, materialize_grads=True))


class Largest(TorchDispatchMode):
    """The most bytes that any tensor made within has in memory."""

    size = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for one in out if isinstance(out, tuple | list) else [out]:
            if isinstance(one, Tensor):
                self.size = max(self.size, one.untyped_storage().nbytes())
        return out
