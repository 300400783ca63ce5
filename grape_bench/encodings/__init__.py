"""The contract of a position encoding: four hooks, most encodings override one.

Shapes: B batch, H heads, T queries, S keys, D head channels, C model channels, r feature channels.
A file of this folder is an encoding of its name; its last line is `PLUGIN = Class`.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from grape_bench.bias import Bias, Sum
from grape_bench.encodings._at import At, Site
from grape_bench.errors import Unsupported
from grape_bench.expression import Expression, Part
from grape_bench.registry import Registry

__all__ = ["At", "Composition", "Encoding", "Site", "build", "build_layers"]


class Encoding(nn.Module):
    """Tells a transformer where its tokens stand, through up to four hooks; each does nothing by default.

    Class attributes are declared facts, read without running the file:
        version: raised when a number it gives would change.
        domain: `causal`, or `both` for encoders as well.
        group, representation: what it is, in GRAPE's terms.
        laws: those of `grape_bench.laws` that must hold beside the universal ones; the others that apply must fail.
        breaks: universal laws that must fail.
        not_streaming: why it cannot decode from a cache; empty where it can.
        variants: option texts that are verified beside the defaults, such as `base=1e6`.
        around: for a wrapper, the encoding around which it is tried and verified.
        shared: one instance for all layers, otherwise one for each.
        table_lr: its parameters learn at the recipe's rate for tables.
        tells: it tells where tokens stand; what hides keys or scales scores alone does not.
        reach_option: the option that says up to which distance it tells distances apart; None there is the training
            length.
        out_of_reach: what places beyond those of the training are: `clamped`, all one, or `untrained`, parameters of
            their own that no training reaches; empty where neither.
        by_content: its bias differs from sequence to sequence of a batch, so that a matrix of it is one for each.
        mistake: for what is here to show a harm, why it is wrong in one clause.

    An instance may state `laws`, `breaks` and `not_streaming` anew where its options decide them.
    """

    version = 1
    domain = "both"
    group = "none"
    representation = "none"
    laws: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()
    not_streaming = ""
    variants: tuple[str, ...] = ()
    around = "rope"
    shared = False
    table_lr = False
    tells = True
    reach_option = ""
    out_of_reach = ""
    by_content = False
    mistake = ""

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

    def redraw(self, generator: torch.Generator) -> None:
        """Draw what is random in each training step anew; the training calls it before a step."""

    def encode(self, q: Tensor, k: Tensor, at: At) -> tuple[Tensor, Tensor, Bias | None]:
        """Everything it does to one attention over whole sequences: turned q and k, and the bias of their scores.

        Args:
            q, k: (B, H, T, D) and (B, kv_heads, S, D), normalised where the model does, and not rotated.

        Returns:
            q and k of the same shapes, and what is added to q k^T / sqrt(D) before the mask, or None.
        """
        features, _ = self.state(k, at, None)
        bias = self.bias(q, features, at)
        return (*self.rotate(q, k, features, at), bias)

    @property
    def hooks(self) -> frozenset[str]:
        """Which of `embed`, `rotate` and `bias` it implements."""
        names = ("embed", "rotate", "bias")
        return frozenset(name for name in names if getattr(type(self), name) is not getattr(Encoding, name))


# What a law is about; the others are about all of an encoding.
_ABOUT = {
    "identity": "rotate",
    "inverse": "rotate",
    "homomorphism": "rotate",
    "isometric": "rotate",
    "unipotent": "bias",
    "path": "bias",
}


class Composition(Encoding):
    """Several encodings at once, each hook applied in the order written.

    A law holds for the sum where it holds for each part that it is about: one of rotations for the parts that rotate.
    That is a promise only where rotations commute; two that do not, such as those of two layouts, break the laws of
    offsets that both obey, and are refused by the gate.

    Args:
        parts: two or more encodings for the same site.
    """

    def __init__(self, parts: list[Encoding]):
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.features = sum(part.features for part in parts)
        self.domain = "causal" if any(part.domain == "causal" for part in parts) else "both"
        self.laws = tuple(dict.fromkeys(law for part in parts for law in part.laws if self._holds(law)))
        self.breaks = tuple(dict.fromkeys(law for part in parts for law in part.breaks))
        self.not_streaming = next((part.not_streaming for part in parts if part.not_streaming), "")

    @property
    def hooks(self) -> frozenset[str]:
        return frozenset().union(*(part.hooks for part in self._parts()))

    def _holds(self, law: str) -> bool:
        return all(law in part.laws for part in self._parts() if _ABOUT.get(law) in (None, *part.hooks))

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

    def redraw(self, generator: torch.Generator) -> None:
        for part in self._parts():
            part.redraw(generator)

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
    return _sum(Expression.parse(text, registry), site, registry)


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


def _sum(expression: Expression, site: Site, registry: Registry) -> Encoding:
    return _compose([_build(part, site, registry) for part in expression.parts])


def _compose(parts: list[Encoding]) -> Encoding:
    return parts[0] if len(parts) == 1 else Composition(parts)


def _build(part: Part, site: Site, registry: Registry) -> Encoding:
    kind = registry[part.name].load()
    if kind.domain == "causal" and not site.causal:
        raise Unsupported(f"{part.name} is causal only, and the model is bidirectional")
    inner = [_sum(part.inner, site, registry)] if part.inner else []
    encoding = kind(site, *inner, **dict(part.options))
    assert isinstance(encoding, Encoding)
    return encoding
