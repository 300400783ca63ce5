"""What is known of an encoding before any of it runs: hooks, options and declared facts of all its parts."""

from dataclasses import dataclass
from typing import Any

from grape_bench.expression import Expression, Part
from grape_bench.registry import Plugin, Registry

_HOOKS = frozenset({"embed", "rotate", "bias"})


@dataclass(frozen=True)
class Known:
    """One part of an expression, with its plug-in."""

    part: Part
    plugin: Plugin

    @property
    def name(self) -> str:
        return self.part.name

    def option(self, name: str) -> Any:
        """The value of an option, its default where it is not written."""
        return dict(self.part.options).get(name, self.plugin.options[name].default)

    def fact(self, name: str) -> Any:
        """A declared fact; empty where it is computed, so that nothing is known."""
        return self.plugin.facts.get(name, "")

    def reach(self, train_length: int) -> int:
        """Tokens up to which it tells distances apart; 0 where nothing bounds them, or a word such as `half` does."""
        name = self.fact("reach_option")
        value = self.option(name) if name in self.plugin.options else 0
        return train_length if value is None else value if isinstance(value, int) else 0

    @property
    def hooks(self) -> frozenset[str]:
        """How it tells where tokens stand. A wrapper has the hooks of what it wraps, which is a part of its own."""
        return self.plugin.methods & _HOOKS if self.fact("tells") and not self.plugin.wraps else frozenset()


@dataclass(frozen=True)
class Portrait:
    """An expression's parts.

    Args:
        parts: as they are added. A wrapper may change where what it wraps believes tokens to stand, so what is inside
            one is no part here.
        whole: those with all that is wrapped.
    """

    text: str
    parts: tuple[Known, ...]
    whole: tuple[Known, ...]

    @classmethod
    def of(cls, text: str, registry: Registry) -> "Portrait":
        """Read an expression that is known to be right."""
        expression = Expression.parse(text, registry)
        parts, whole = (
            tuple(Known(part, registry[part.name]) for part in some) for some in (expression.parts, expression.walk())
        )
        return cls(text, parts, whole)

    @property
    def hooks(self) -> frozenset[str]:
        """How it tells where tokens stand; empty where it does not."""
        return frozenset[str]().union(*(one.hooks for one in self.whole))

    def alone(self, hook: str) -> bool:
        """Tells where tokens stand by this hook only, and no wrapper moves them."""
        return self.hooks == {hook} and not any(one.plugin.wraps for one in self.parts)

    def by(self, *hooks: str) -> list[str]:
        """Names of the parts with one of these hooks."""
        return [one.name for one in self.whole if one.hooks & {*hooks}]

    @property
    def causal(self) -> bool:
        """Can live in a decoder alone."""
        return any(one.fact("domain") == "causal" for one in self.whole)

    @property
    def not_streaming(self) -> str:
        """Why it cannot decode from a cache, empty where it can."""
        return next((str(why) for one in self.whole if (why := one.fact("not_streaming"))), "")

    def matrices(self, batch: int) -> int:
        """What its bias is where it is dense: no (H, T, S) matrix, one, or one for each sequence of the batch."""
        if not any("bias" in one.plugin.methods for one in self.whole if not one.plugin.wraps):
            return 0
        return batch if any(one.fact("by_content") for one in self.whole) else 1
