"""Expressions that are broken or meant ill: a sentence, or the same expression again from its own text."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grape_bench.errors import UserError
from grape_bench.expression import Expression
from grape_bench.registry import Registry

TRUE = (
    "rope", "none", "rope(base=1e6)", "rope + fourier", "randomized(rope(base=1e6)) + fourier",
    "t5(buckets=16, max_distance=32)", "alibi(form='symmetric')", "layers(rope)", "yarn(factor=4.0) + clamp",
    "grape_m(planes=2)", "registers(writes=4)",
)  # fmt: skip
PIECES = (
    "(", ")", "=", ",", "+", " ", "\n", "\t", "\0", "**", "*", "[", "]", "{}", "'", '"', "\\", "#", ";", ":=",
    "lambda: 0", "f'{1}'", "1e400", "-1e400", "nan", "inf", "1j", "9" * 300, "0x" + "f" * 400, "1_0", "10**10**10",
    "True", "None", "...", "b''", "'\\ud800'", "rope", "base=", "inner=", "rope(", "randomized(", "layers(", "site=",
    "self=", "__class__", ".__globals__", "é", "\u202e", "ｒope", "__import__('os').system('touch owned')",
    "(lambda: 0)()", "[x for x in ()]", "not ", "await ", "yield", "*args", "**{}", "(" * 90, "-" * 500,
    "+ rope" * 150, "rope(" * 150, "randomized(" * 80, "1," * 400, "\x85", "\ufeff", "\U0001f600",
)  # fmt: skip


@pytest.fixture(scope="module")
def registries() -> tuple[Registry, Registry]:
    return Registry("encodings"), Registry("tasks")


def wounded(seed: int) -> str:
    chance = random.Random(seed)
    text = chance.choice(TRUE)
    for _ in range(chance.randint(1, 5)):
        start = chance.randint(0, len(text))
        text = text[:start] + chance.choice(PIECES) + text[start + chance.choice([0, 0, 1, 2, 8]) :]
    return text


TEXTS = st.one_of(st.integers(0, 2**32).map(wounded), st.text(max_size=60))


@settings(settings.get_profile("hostile"), max_examples=1000)
@given(text=TEXTS)
def test_an_expression_is_refused_or_reads_as_its_own_text(sandbox, registries, text: str) -> None:
    for registry in registries:
        try:
            found = sandbox.call(lambda registry=registry: Expression.parse(text, registry))
        except UserError:
            continue
        assert Expression.parse(str(found), registry) == found
    assert not (sandbox.folder / "owned").exists()
