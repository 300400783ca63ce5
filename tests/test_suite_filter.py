"""Filters that narrow a run."""

from pathlib import Path

import pytest

from grape_bench.errors import UserError
from grape_bench.suite import Suite, expand, group, narrow, parse

HOME = Path(__file__).parents[1]
HEAD = "title: A test\nencodings: [none, rope, alibi, rope(base=1e6)]\n"
GRID = "cost:\n  - lengths: [256, 1024]\n    heads: [4, 8]\n    metrics: [forward_ms, peak_mib]\n"
TRAINING = "accuracy:\n  - task: registers(writes=2)\n    train_length: 64\n    test_lengths: [64, 96]\n"
FULL = f"{HEAD}baseline: none\nseeds: [3, 0]\n{GRID}{TRAINING}"


def suite(text: str) -> Suite:
    return parse(text, "suites/test.yaml")


def narrowed(*only: str) -> list[tuple[object, ...]]:
    found = suite(FULL)
    blocks = narrow(group(expand(found), found.baseline), only)
    return [(b.cells[0].kind, tuple(c.encoding for c in b.cells), b.baseline) for b in blocks]


def test_no_filter_keeps_all() -> None:
    # Of two metrics at four settings, four blocks of times and sixteen single peaks; and eight trainings.
    assert len(narrowed()) == 4 + 16 + 8


def test_a_filter_by_encoding_keeps_the_baseline_that_times_are_paired_with() -> None:
    alone = ("rope(base=1000000)",)
    assert narrowed("encoding=rope(base = 1e6)") == [
        *[("cost", ("none", *alone), 0)] * 4,
        *[("cost", alone, None)] * 4,  # peaks, which pair with nothing
        *[("accuracy", alone, None)] * 2,
    ]


def test_filters_of_one_key_are_alternatives_and_of_two_keys_must_both_hold() -> None:
    assert len(narrowed("length=256", "length=1024")) == 4 + 16
    assert len(narrowed("length=256", "heads=4", "metric=forward_ms")) == 1
    assert len(narrowed("kind=accuracy", "seed=0", "encoding=rope", "encoding=alibi")) == 2
    assert len(narrowed("task=registers(writes=2.0)")) == 8
    assert len(narrowed("causal=False", "kv_heads=4")) == 2 + 8


def test_a_filter_by_a_derived_metric_keeps_its_source() -> None:
    found = suite(f"{HEAD}cost:\n  - {{lengths: [8], scope: model, metrics: [tokens_per_second, peak_mib]}}\n")
    [block] = narrow(group(expand(found), None), ["metric=tokens_per_second"])
    assert {cell.metric for cell in block.cells} == {"train_step_ms"}


@pytest.mark.parametrize(
    ("only", "error"),
    [
        (["lenght=256"], "there is no key 'lenght'. Did you mean 'length'?"),
        (["length"], "write KEY=VALUE"),
        (["length="], "write KEY=VALUE"),
        (["length=512"], "--only length=512 matches nothing. Allowed: 1024, 256."),
        (["encoding=roope"], "Did you mean 'rope'?"),
        (["encoding=t5"], "matches nothing"),
        (["length=256", "kind=accuracy"], "no cell passes all of: length=256, kind=accuracy"),
    ],
)
def test_a_filter_that_cannot_be_met_is_refused(only: list[str], error: str) -> None:
    with pytest.raises(UserError) as caught:
        narrowed(*only)
    assert error in str(caught.value)
