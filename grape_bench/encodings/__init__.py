"""The contract of a position encoding: four hooks, most encodings override one.

Shapes: B batch, H heads, T queries, S keys, D head channels, C model channels, r feature channels.
A file of this folder is an encoding of its name; its last line is `PLUGIN = Class`.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from grape_bench.bias import Bias, Sum
from grape_bench.errors import Unsupported
from grape_bench.expression import Expression, Part
from grape_bench.registry import Registry


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
    """

    x: Tensor
    q_pos: Tensor
    k_pos: Tensor
    uniform: bool

    def centred(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Positions (1 or B, 1, T, 1) and (1 or B, 1, S, 1) counted from the middle key.

        Small numbers are exact for longer, and what depends on differences alone does not see the shift.
        """
        middle = self.k_pos[..., self.k_pos.shape[-1] // 2, None]
        q, k = ((p - middle).to(dtype).reshape(-1, 1, p.shape[-1], 1) for p in (self.q_pos, self.k_pos))
        return q, k


class Encoding(nn.Module):
    """Tells a transformer where its tokens stand, through up to four hooks; each does nothing by default.

    Class attributes are declared facts, read without running the file:
        version: raised when a number it gives would change.
        domain: `causal`, or `both` for encoders as well.
        group, representation: what it is, in GRAPE's terms.
        laws: what must hold: `relative` (scores see differences of positions alone), `isometric` (turning keeps norms).
        shared: one instance for all layers, otherwise one for each.
        table_lr: its parameters learn at the recipe's rate for tables.
    """

    version = 1
    domain = "both"
    group = "none"
    representation = "none"
    laws: tuple[str, ...] = ()
    shared = False
    table_lr = False

    features = 0  # r, channels that `state` keeps beside each key

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """Add position to token vectors x (B, T, C) at positions (T,) or (B, T)."""
        return x

    def state(self, k: Tensor, at: At, carry: Any) -> tuple[Tensor | None, Any]:
        """What is cached beside each key: features (B, kv_heads, S, r), and what the next token continues from."""
        return None, carry

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        """Turn queries (B, H, T, D) and keys (B, kv_heads, S, D), normalised where the model normalises them."""
        return q, k

    def bias(self, q: Tensor, features: Tensor | None, at: At) -> Bias | None:
        """What is added to the scaled scores; q (B, H, T, D) is normalised and not rotated."""
        return None

    def reset(self, generator: torch.Generator) -> None:
        """Draw the initial values of parameters that do not start at a constant."""


class Composition(Encoding):
    """Several encodings at once, each hook applied in the order written.

    Args:
        parts: two or more encodings for the same site.
    """

    def __init__(self, parts: list[Encoding]):
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.features = sum(part.features for part in parts)

    def _parts(self) -> list[Encoding]:
        return [part for part in self.parts if isinstance(part, Encoding)]

    def _slices(self, features: Tensor | None) -> list[Tensor | None]:
        if features is None:
            return [None] * len(self.parts)
        pieces = features.split([part.features for part in self._parts()], dim=-1)
        return [piece if piece.shape[-1] else None for piece in pieces]

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        for part in self._parts():
            x = part.embed(x, positions)
        return x

    def state(self, k: Tensor, at: At, carry: Any) -> tuple[Tensor | None, Any]:
        carries = carry if carry is not None else [None] * len(self.parts)
        pairs = [part.state(k, at, one) for part, one in zip(self._parts(), carries, strict=True)]
        made = [features for features, _ in pairs if features is not None]
        return (torch.cat(made, dim=-1) if made else None), [one for _, one in pairs]

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        for part, piece in zip(self._parts(), self._slices(features), strict=True):
            q, k = part.rotate(q, k, piece, at)
        return q, k

    def bias(self, q: Tensor, features: Tensor | None, at: At) -> Bias | None:
        pieces = zip(self._parts(), self._slices(features), strict=True)
        made = [one for part, piece in pieces if (one := part.bias(q, piece, at)) is not None]
        return Sum(made) if len(made) > 1 else (made[0] if made else None)


def build(text: str, site: Site) -> Encoding:
    """Make the encoding that an expression names, for one layer.

    Raises:
        UserError: the text is no expression over known encodings and options.
        Unsupported: the encoding cannot live at this site.
    """
    registry = Registry("encodings")
    return _compose([_build(part, site, registry) for part in Expression.parse(text, registry).parts])


def build_layers(text: str, site: Site) -> list[Encoding]:
    """Make it for all layers of a model; a part that is `shared` is one instance in all of them.

    Raises:
        UserError, Unsupported: as `build`.
    """
    registry = Registry("encodings")
    columns = [_install(part, site, registry) for part in Expression.parse(text, registry).parts]
    return [_compose(list(row)) for row in zip(*columns, strict=True)]


def _install(part: Part, site: Site, registry: Registry) -> list[Encoding]:
    first = _build(part, replace(site, layer=0), registry)
    if first.shared:
        return [first] * site.layers
    return [first, *(_build(part, replace(site, layer=index), registry) for index in range(1, site.layers))]


def _compose(parts: list[Encoding]) -> Encoding:
    return parts[0] if len(parts) == 1 else Composition(parts)


def _build(part: Part, site: Site, registry: Registry) -> Encoding:
    kind = registry[part.name].load()
    if kind.domain == "causal" and not site.causal:
        raise Unsupported(f"{part.name} is causal only, and the model is bidirectional")
    inner = [build(str(part.inner), site)] if part.inner else []
    encoding = kind(site, *inner, **dict(part.options))
    assert isinstance(encoding, Encoding)
    return encoding
