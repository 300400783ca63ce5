"""Additive biases as values: what kind of function on the group a bias is, and its tiles.

Shapes: H heads, T queries, S keys, r channels of a lift, b is 1 or the batch. A tile is (b, H, rows, columns).
"""

from collections.abc import Callable, Sequence
from typing import Self

import torch
from torch import Tensor

from grape_bench.errors import Unsupported

ALL = slice(None)


class Bias:
    """A bias b(i, j) that is added to the scaled scores.

    `tile` is the specification. What else a bias offers (`lift`) equals it up to a constant per row, which softmax
    does not see. That of a causal encoding may hold for past keys alone; the mask hides the others.
    """

    reads_scores: bool = False

    def tile(self, rows: slice = ALL, cols: slice = ALL, scores: Tensor | None = None) -> Tensor:
        """Some rows and columns of the matrix.

        Args:
            scores: (B, H, rows, S) scaled scores of these rows, for a bias that reads them.

        Returns:
            (b, H, rows, columns), in at least float32.
        """
        raise NotImplementedError

    def dense(self) -> Tensor:
        """The whole matrix: (H, T, S), or (B, H, T, S) where content decides.

        Raises:
            Unsupported: it reads the scores, so there is no matrix without them.
        """
        if self.reads_scores:
            raise Unsupported("this bias reads the scores, so it has no matrix of its own; use `attend`")
        whole = self.tile()
        return whole[0] if whole.shape[0] == 1 else whole

    def parts(self) -> tuple["Bias", ...]:
        """The members of a sum, sums within it taken apart; any other bias alone."""
        return (self,)

    @property
    def learned(self) -> bool:
        """Whether a gradient will be asked of it."""
        return torch.is_grad_enabled() and any(leaf.requires_grad for leaf in self.leaves())

    def leaves(self) -> tuple[Tensor, ...]:
        """The tensors that it is made of; gradients with respect to these are all its gradients."""
        raise NotImplementedError

    def with_leaves(self, leaves: Sequence[Tensor]) -> Self:
        """The same bias, made of other tensors of the same shapes."""
        raise NotImplementedError


class Toeplitz(Bias):
    """A function of the distance alone, b(i, j) = k(p_i - p_j), on translations of Z or R.

    On uniform positions it is T + S - 1 numbers and never more; on others it gathers by distance.

    Args:
        kernel: distances (...) and leaves to values (H, ...).
        leaves: learned tensors that the kernel reads.
        q_pos, k_pos: positions (T,) and (S,), or (B, T) and (B, S) where they differ over the batch.
        uniform: both run in steps of one.
    """

    def __init__(
        self,
        kernel: Callable[..., Tensor],
        leaves: Sequence[Tensor],
        q_pos: Tensor,
        k_pos: Tensor,
        *,
        uniform: bool,
    ):
        self._kernel, self._leaves, self._q_pos, self._k_pos = kernel, tuple(leaves), q_pos, k_pos
        self.rows, self.cols = q_pos.shape[-1], k_pos.shape[-1]
        self.values: Tensor | None = None  # (H, T + S - 1), from the largest distance to the smallest
        if uniform:
            steps = torch.arange(self.rows + self.cols - 1, device=q_pos.device)
            self.values = kernel(q_pos[-1] - k_pos[0] - steps, *self._leaves)

    def tile(self, rows: slice = ALL, cols: slice = ALL, scores: Tensor | None = None) -> Tensor:
        if self.values is None:
            far = self._q_pos[..., rows, None] - self._k_pos[..., None, cols]
            values = self._kernel(far, *self._leaves)  # (H, R, C) or (H, B, R, C)
            return values[None] if values.dim() == 3 else values.transpose(0, 1)
        top, bottom, down = rows.indices(self.rows)
        left, right, along = cols.indices(self.cols)
        # values[(T - 1 - i) + j] belongs to (i, j): a window per row, the last row first.
        band = self.values[:, self.rows - bottom + left : self.rows - top + right - 1]
        return band.unfold(-1, right - left, 1).flip(-2)[None, :, ::down, ::along]

    def leaves(self) -> tuple[Tensor, ...]:
        return self._leaves if self.values is None else (self.values,)

    def with_leaves(self, leaves: Sequence[Tensor]) -> Self:
        other = type(self)(self._kernel, self._leaves, self._q_pos, self._k_pos, uniform=False)
        if self.values is None:
            other._leaves = tuple(leaves)
        else:
            (other.values,) = leaves
        return other


class LowRank(Bias):
    """A matrix coefficient of a finite-dimensional representation, b(i, j) = u_i . v_j + w_i.

    Args:
        u: (b, H, T, r) on the query side, where slopes and amplitudes live, so that grouped queries work.
        v: (b, 1 or kv_heads, S, r) on the key side.
        row: (b, H, T, 1), the part that softmax does not see; a lift leaves it out.
        bounded: u and v stay near 1 whatever the length, as waves do. What grows, such as a position, needs more bits
            than a half precision number has.
    """

    def __init__(self, u: Tensor, v: Tensor, row: Tensor | None = None, *, bounded: bool = False):
        self.u, self.v, self.row, self.bounded = u, v, row, bounded

    def tile(self, rows: slice = ALL, cols: slice = ALL, scores: Tensor | None = None) -> Tensor:
        u, v = self.u[..., rows, :], self.v[..., cols, :]
        if v.shape[1] not in (1, u.shape[1]):
            v = v.repeat_interleave(u.shape[1] // v.shape[1], dim=1)
        matrix = u @ v.transpose(-1, -2)
        return matrix if self.row is None else matrix + self.row[..., rows, :]

    def lift(self) -> tuple[Tensor, Tensor]:
        """Extra channels (u, v) for queries and keys that give the bias up to a constant per row."""
        return self.u, self.v

    def leaves(self) -> tuple[Tensor, ...]:
        return (self.u, self.v) if self.row is None else (self.u, self.v, self.row)

    def with_leaves(self, leaves: Sequence[Tensor]) -> Self:
        return type(self)(*leaves, bounded=self.bounded)


class Rowwise(Bias):
    """Anything else, a block of whole rows at a time.

    Args:
        function: (rows, scores of these rows or None, *leaves) to (b, H, rows, S).
        leaves: the tensors that it is made of.
        reads_scores: it needs the scaled scores of its rows; nothing is then lifted.
    """

    def __init__(self, function: Callable[..., Tensor], leaves: Sequence[Tensor], *, reads_scores: bool = False):
        self._function, self._leaves, self.reads_scores = function, tuple(leaves), reads_scores

    def tile(self, rows: slice = ALL, cols: slice = ALL, scores: Tensor | None = None) -> Tensor:
        if self.reads_scores and scores is None:
            raise ValueError("this bias reads the scores of its rows, and none were given")
        return self._function(rows, scores, *self._leaves)[..., cols]

    def leaves(self) -> tuple[Tensor, ...]:
        return self._leaves

    def with_leaves(self, leaves: Sequence[Tensor]) -> Self:
        return type(self)(self._function, leaves, reads_scores=self.reads_scores)


class Sum(Bias):
    """A sum of biases, which reads scores where a member does."""

    def __init__(self, members: Sequence[Bias]):
        self.members = tuple(members)
        self.reads_scores = any(one.reads_scores for one in members)

    def tile(self, rows: slice = ALL, cols: slice = ALL, scores: Tensor | None = None) -> Tensor:
        first, *rest = (one.tile(rows, cols, scores) for one in self.members)
        return sum(rest, start=first)

    def parts(self) -> tuple[Bias, ...]:
        return tuple(part for one in self.members for part in one.parts())

    def leaves(self) -> tuple[Tensor, ...]:
        return tuple(leaf for one in self.members for leaf in one.leaves())

    def with_leaves(self, leaves: Sequence[Tensor]) -> Self:
        left, members = list(leaves), []
        for one in self.members:
            count = len(one.leaves())
            members.append(one.with_leaves(left[:count]))
            del left[:count]
        return type(self)(members)
