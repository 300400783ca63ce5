"""What the machine could resolve, from controls with known ratios."""

from types import MappingProxyType

import pytest

from grape_bench.cell import CostCell
from grape_bench.record import TimeReading
from grape_bench.report import build
from grape_bench.suite import Suite

CELL = CostCell(metric="forward_ms", encoding="rope", length=64)


def reading(factor, *, wall=1.0, sentinel=(2.0, 2.0, 2.0, 2.0), overhead=0.001):
    samples = tuple(factor * one for one in (10.0, 11.0, 10.5, 9.8, 10.2, 10.1))
    return TimeReading(
        samples_ms=samples,
        wall_ms=tuple(wall * one for one in samples),
        clock="process_time",
        sentinel_ms=sentinel,
        overhead_ms=overhead,
    )


@pytest.fixture
def section(make_record):
    def make(pairs, **options):
        suite = Suite.model_construct(name="aa", title="A/A", encodings=("rope",), baseline="rope")
        records = []
        for index, factor in enumerate(pairs):
            shared = {"block_run": f"block-{index}"}
            records.append(make_record(CELL, reading=reading(1.0, **options), **shared))
            records.append(make_record(CELL, reading=reading(factor, **options), role="control", **shared))
        report = build(suite, [CELL], records, MappingProxyType({}))
        return next(one for one in report.sections if one.id == "resolution")

    return make


def cells(table):
    return [[entry.text for entry in row] for row in table.rows]


def test_intervals_that_hold_one_are_counted(section):
    summary, runs = section([1.0, 1.0, 1.2]).pieces
    assert cells(summary)[0][1] == "2 of 3"
    assert [row[0] for row in cells(runs)] == ["1", "2", "3"]
    assert cells(runs)[2][1].startswith("1.2")


def test_drift_is_the_sentinels_second_half_over_its_first(section):
    (summary,) = section([1.0], sentinel=(2.0, 2.0, 2.2, 2.2)).pieces
    assert cells(summary)[0][3] == "+10.0 %"


def test_the_harness_is_a_share_of_the_shortest_sample(section):
    (summary,) = section([1.0], overhead=0.0098).pieces
    assert cells(summary)[0][4] == "0.1 % at most"


@pytest.mark.parametrize(("wall", "said"), [(1.05, ""), (1.9, "contended")])
def test_contention_is_marked_above_a_tenth(section, wall, said):
    (summary,) = section([1.0], wall=wall).pieces
    entry = summary.rows[0][5]
    assert entry.text == f"{wall:.2f}"
    assert entry.note == said
