"""Where an encoding is installed, and where the tokens of one call stand."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Site:
    """Where an encoding is installed.

    Args:
        width: model channels C; head_dim: D; layer: index of this layer of `layers`.
        train_length: tokens of the training sequences; longest: tokens of the longest sequence it will be asked for.
    """

    width: int
    heads: int
    kv_heads: int
    head_dim: int
    train_length: int
    longest: int
    layer: int = 0
    layers: int = 1
    causal: bool = False


@dataclass(frozen=True)
class At:
    """One call: the layer's input and where its queries and keys stand.

    Args:
        x: (B, S, C) the input of the layer, of the tokens whose keys are new.
        q_pos, k_pos: positions (T,) and (S,), or (B, T) and (B, S); integers, or reals where the group is R.
        uniform: both run in steps of one and are the same for the batch; set where positions are made.
        tables: what `once` keeps; it lives as long as these positions do, and layers share it.
    """

    x: Tensor
    q_pos: Tensor
    k_pos: Tensor
    uniform: bool
    tables: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """A table of these positions that several layers need, made by the first of them.

        Args:
            key: everything that the table is made of beside the positions: options, dtype, and whose positions.
            make: gives a constant; nothing that is learned may be kept.
        """
        if key not in self.tables:
            self.tables[key] = make()
        return self.tables[key]

    def beside(self, k_pos: Tensor) -> "At":
        """The same queries against other keys."""
        return replace(self, k_pos=k_pos, tables={})

    def centred(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Positions (1 or B, 1, T, 1) and (1 or B, 1, S, 1) counted from the middle key.

        Small numbers are exact for longer, and what depends on differences alone does not see the shift.
        """
        middle = self.k_pos[..., self.k_pos.shape[-1] // 2, None]
        q, k = ((p - middle).to(dtype).reshape(-1, 1, p.shape[-1], 1) for p in (self.q_pos, self.k_pos))
        return q, k
