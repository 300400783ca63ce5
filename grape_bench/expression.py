"""Encoding expressions, `randomized(rope(base=1e6)) + fourier`, to parts."""

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

from grape_bench.errors import UserError, allowed
from grape_bench.registry import Plugin, Registry

_HUGE = 2**1000  # a float holds it still
_LONGEST = 1000  # characters; ast recurses, so the text is bounded before it is parsed


@dataclass(frozen=True)
class Part:
    """One plug-in with the options that differ from its defaults, sorted by name.

    Args:
        inner: for a wrapper, what it wraps.
    """

    name: str
    version: str
    options: tuple[tuple[str, Any], ...] = ()
    inner: "Expression | None" = None

    def __str__(self) -> str:
        inside = [str(self.inner)] if self.inner else []
        inside += [f"{key}={value!r}" for key, value in self.options]
        return f"{self.name}({', '.join(inside)})" if inside else self.name


@dataclass(frozen=True)
class Expression:
    """A sum of parts. Its text is canonical: two spellings of one encoding read the same.

    Options at their default are left out, numbers are written one way (`1e4`, `10000` and `10000.0` are
    `10000`), and parsing the text again gives an equal expression.
    """

    parts: tuple[Part, ...]

    @classmethod
    def parse(cls, text: str, registry: Registry) -> Self:
        """Read an expression.

        Raises:
            UserError: broken syntax, an unknown name or option, or a value that does not fit the option.
        """
        if len(text) > _LONGEST:
            raise UserError(f"an expression is at most {_LONGEST} characters long, this one has {len(text)}")
        try:
            with warnings.catch_warnings(action="ignore"):  # such as that `1if` is no number: it is refused below
                tree = ast.parse(text.strip(), mode="eval")
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            reason = getattr(error, "msg", None) or str(error)
            raise UserError(f"{text!r} is not an expression such as 'rope(base=1e6) + alibi': {reason}") from None
        return cls(tuple(_parts(tree.body, text, registry)))

    def walk(self) -> Iterator[Part]:
        """Every part in the order written, what a wrapper wraps behind it."""
        for part in self.parts:
            yield part
            yield from part.inner.walk() if part.inner else ()

    def versions(self) -> tuple[str, ...]:
        """`name@version` of every plug-in named, in order."""
        return tuple(f"{part.name}@{part.version}" for part in self.walk())

    def __str__(self) -> str:
        return " + ".join(map(str, self.parts))


def canonical(value: Any) -> Any:
    """One spelling for each number: whole floats become integers, also inside lists and tuples.

    Floats from 2^63 on stay floats: as an integer, 1e300 has 301 digits and is beyond what torch takes.
    """
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return int(value)
    if isinstance(value, list | tuple):
        return tuple(canonical(one) for one in value)
    return value


def _parts(node: ast.expr, text: str, registry: Registry) -> Iterator[Part]:
    match node:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield from _parts(left, text, registry)
            yield from _parts(right, text, registry)
        case ast.Name(id=name):
            yield _part(registry[name], [], {}, text, registry)
        case ast.Constant(value=None):  # YAML and Python both write the encoding `none` as a word
            yield _part(registry["none"], [], {}, text, registry)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
            yield _part(registry[name], args, _once(keywords, text), text, registry)
        case _:
            raise UserError(f"{text!r}: {ast.unparse(node)!r} is not allowed; write name, name(option=value) or a + b")


def _once(keywords: list[ast.keyword], text: str) -> dict[str, ast.expr]:
    options: dict[str, ast.expr] = {}
    for word in keywords:
        if word.arg is None or word.arg in options:
            reason = f"{word.arg} is given twice" if word.arg else "** is not allowed"
            raise UserError(f"{text!r}: {reason}; write each option once, name=value")
        options[word.arg] = word.value
    return options


def _part(plugin: Plugin, args: list[ast.expr], keywords: dict[str, ast.expr], text: str, registry: Registry) -> Part:
    if args and not plugin.wraps:
        raise UserError(f"{text!r}: {plugin.name} takes its options by name, such as {_example(plugin)}")
    if len(args) != plugin.wraps:
        raise UserError(f"{text!r}: {plugin.name} wraps one expression, {len(args)} given")
    options = {key: _value(plugin, key, node, text) for key, node in keywords.items()}
    missing = [name for name, option in plugin.options.items() if option.required and name not in options]
    if missing:
        raise UserError(f"{text!r}: {plugin.name} needs the option {missing[0]!r}")
    changed = {key: value for key, value in options.items() if value != canonical(plugin.options[key].default)}
    inner = Expression(tuple(_parts(args[0], text, registry))) if args else None
    return Part(plugin.name, plugin.version, tuple(sorted(changed.items())), inner)


def _value(plugin: Plugin, key: str, node: ast.expr, text: str) -> Any:
    if key not in plugin.options:
        raise UserError(f"{text!r}: {plugin.name} has no option {key!r}.{allowed(key, plugin.options)}")
    option = plugin.options[key]
    try:
        value = canonical(ast.literal_eval(node))
    except (ValueError, TypeError, MemoryError, RecursionError):
        raise UserError(f"{text!r}: {key}={ast.unparse(node)} is not a literal value") from None
    if not _plain(value):
        raise UserError(f"{text!r}: {key}={ast.unparse(node)} is no finite number, text, true, false, None or tuple")
    if not option.accepts(value):
        raise UserError(f"{text!r}: {plugin.name}'s {key} is {option.annotation}, not {value!r}")
    return value


def _plain(value: Any) -> bool:
    """Whether a literal can be an option: it has a canonical spelling, and torch takes it."""
    if isinstance(value, list | tuple):
        return all(map(_plain, value))
    if isinstance(value, int | float):
        return -_HUGE < value < _HUGE
    return value is None or isinstance(value, str)


def _example(plugin: Plugin) -> str:
    option = next(iter(plugin.options.values()), None)
    return f"{plugin.name}({option.name}={option.default!r})" if option else f"plain {plugin.name!r}"
