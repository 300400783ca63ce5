"""Expressions: one canonical text for each encoding, and a sentence for each mistake."""

import ast
import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grape_bench.errors import UserError
from grape_bench.expression import Expression, canonical
from grape_bench.origin import Origin
from grape_bench.registry import Option, Plugin, Registry

PLUGINS = {
    "rope": Plugin("encodings", "rope", "", {"base": Option("base", "float", 10_000.0)}, {"version": 3}),
    "none": Plugin("encodings", "none", "", {}, {}),
    "box": Plugin(
        "encodings",
        "box",
        "",
        {
            "size": Option("size", "int", 8),
            "form": Option("form", "Literal['auto', 'split']", "auto"),
            "deep": Option("deep", "bool", False),
            "window": Option("window", "int | None", None),
            "at": Option("at", "tuple[float, ...]", ()),
        },
        {},
    ),
    "shuffled": Plugin("encodings", "shuffled", "", {"times": Option("times", "float", 4)}, {}, wraps=True),
    "needy": Plugin("encodings", "needy", "", {"what": Option("what", "str", required=True)}, {}),
}


class Shelf(Registry):
    """A registry without a folder."""

    def __init__(self) -> None:
        self.kind = "encodings"
        self._plugins, self._origins = PLUGINS, {name: Origin("encodings", name) for name in PLUGINS}


def text(written: str) -> str:
    return str(Expression.parse(written, Shelf()))


def refusal(written: str) -> str:
    with pytest.raises(UserError) as caught:
        Expression.parse(written, Shelf())
    return str(caught.value)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("rope", "rope"),
        (" rope( ) ", "rope"),
        ("rope(base=1e4)", "rope"),
        ("rope(base=10000)", "rope"),
        ("rope(base=1_000_000.0)", "rope(base=1000000)"),
        ("rope(base=0.5)", "rope(base=0.5)"),
        ("rope(base=-1)", "rope(base=-1)"),
        ("rope+none", "rope + none"),
        ("(rope + none) + rope", "rope + none + rope"),
        ("rope + (none + rope)", "rope + none + rope"),
        ("None", "none"),
        ("box(window=3, size=1e1)", "box(size=10, window=3)"),
        ("box(window=None, form='auto', deep=False)", "box"),
        ('box(form="split")', "box(form='split')"),
        ("box(at=[1.0, 2.5])", "box(at=(1, 2.5))"),
        ("shuffled(rope(base=1e4) + none, times=4.0)", "shuffled(rope + none)"),
        ("shuffled(shuffled(rope), times=2)", "shuffled(shuffled(rope), times=2)"),
    ],
)
def test_two_spellings_of_one_encoding_read_the_same(written: str, read: str) -> None:
    assert text(written) == read


@pytest.mark.parametrize(
    ("written", "error"),
    [
        ("roope", "there is no encoding named 'roope'. Did you mean 'rope'?"),
        ("rope(", "is not an expression"),
        ("", "is not an expression"),
        ("rope\x00", "is not an expression"),
        ("rope(1e6)", "rope takes its options by name, such as rope(base=10000.0)"),
        ("rope(bass=1)", "rope has no option 'bass'. Did you mean 'base'?"),
        ("rope(base=1, base=2)", "base is given twice"),
        ("rope(**{})", "** is not allowed"),
        ("rope(base=x)", "base=x is not a literal value"),
        ("rope(base=True)", "rope's base is float, not True"),
        ("rope(base='1')", "rope's base is float, not '1'"),
        ("rope(base=1e999)", "no finite number"),
        ("rope(base=-1e999)", "no finite number"),
        ("rope(base=1j)", "no finite number"),
        ("rope(base={})", "no finite number"),
        ("rope(base=b'x')", "no finite number"),
        (f"rope(base={'9' * 400})", "no finite number"),
        ("box(size=1.5)", "box's size is int, not 1.5"),
        ("box(form='half')", "not 'half'"),
        ("box(at=(1, 'x'))", "box's at is tuple[float, ...]"),
        ("rope - none", "is not allowed"),
        ("rope * 2", "is not allowed"),
        ("rope.base", "is not allowed"),
        ("rope[0]", "is not allowed"),
        ("__import__('os')", "there is no encoding"),
        ("(lambda: rope)()", "is not allowed"),
        ("rope; none", "is not an expression"),
        ("3", "is not allowed"),
        ("shuffled", "shuffled wraps one expression, 0 given"),
        ("shuffled(rope, none)", "shuffled wraps one expression, 2 given"),
        ("shuffled(*rope)", "is not allowed"),
        ("needy", "needy needs the option 'what'"),
        ("+".join(["rope"] * 300), "at most 1000 characters"),
        ("(" * 400 + "rope" + ")" * 400, "is not an expression"),
    ],
)
def test_a_mistake_is_refused_with_a_sentence(written: str, error: str) -> None:
    assert error in refusal(written)


def test_versions_name_every_plugin_inside_and_out() -> None:
    found = Expression.parse("shuffled(rope + none) + box", Shelf()).versions()
    assert found == ("shuffled@1", "rope@3", "none@1", "box@1")


numbers = st.integers(-(2**53), 2**53) | st.floats(-1e200, 1e200)
leaves = st.one_of(
    st.just("none"),
    st.builds("rope(base={!r})".format, numbers),
    st.builds(
        "box(size={!r}, form={!r}, deep={!r}, window={!r}, at={!r})".format,
        st.integers(-(10**6), 10**6),
        st.sampled_from(["auto", "split"]),
        st.booleans(),
        st.none() | st.integers(0, 99),
        st.lists(numbers, max_size=3),
    ),
)
texts = st.recursive(
    leaves,
    lambda inner: (
        st.builds("{} + {}".format, inner, inner) | st.builds("shuffled({}, times={!r})".format, inner, numbers)
    ),
    max_leaves=3,
)


@given(texts)
def test_the_canonical_text_reads_as_an_equal_expression(written: str) -> None:
    first = Expression.parse(written, Shelf())
    again = Expression.parse(str(first), Shelf())
    assert (again, str(again)) == (first, str(first))


@given(texts)
def test_the_canonical_text_keeps_every_value_that_is_not_a_default(written: str) -> None:
    """By python's own reader: the options of both texts, less defaults, are equal numbers."""
    assert options(text(written)) == options(written)


def options(written: str) -> Counter[tuple[str, frozenset[tuple[str, Any]]]]:
    calls: Counter[tuple[str, frozenset[tuple[str, Any]]]] = Counter()
    for node in ast.walk(ast.parse(written, mode="eval")):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            given = {str(word.arg): ast.literal_eval(word.value) for word in node.keywords}
            given = {key: tuple(one) if isinstance(one, list) else one for key, one in given.items()}
            changed = frozenset((k, v) for k, v in given.items() if v != PLUGINS[name].options[k].default)
            calls[name, changed] += bool(changed)
    return +calls


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_keeps_its_value(number: float) -> None:
    assert canonical(number) == number
    assert isinstance(canonical(number), int) == (number == math.floor(number) and abs(number) < 2**63)


def test_true_stays_true() -> None:
    assert canonical(True) is True


@pytest.mark.parametrize("name", sorted(Registry("encodings")))
def test_every_encoding_with_its_defaults_is_its_name(name: str) -> None:
    registry = Registry("encodings")
    plugin = registry[name]
    if plugin.wraps or any(option.required for option in plugin.options.values()):
        pytest.skip(f"{name} cannot be written alone")
    spelled = ", ".join(f"{key}={option.default!r}" for key, option in plugin.options.items())
    assert str(Expression.parse(f"{name}({spelled})", registry)) == name
