"""The harness itself: expanding a suite, reading and ranking records, rendering a report."""

from itertools import product

import pytest

from grape_bench.cell import AccuracyCell, CostCell
from grape_bench.registry import Registry
from grape_bench.report import build
from grape_bench.store import Store
from grape_bench.suite import expand, group, parse
from grape_bench.suite_format import Suite
from grape_bench.view import View

ENCODINGS = ("none", "rope", "t5", "alibi")
TEXT = f"""\
title: Ten thousand cells
baseline: none
encodings: [{", ".join(ENCODINGS)}]
cost:
  - lengths: {list(range(16, 416, 16))}
    heads: {list(range(1, 11))}
    head_dim: {list(range(8, 88, 8))}
    metrics: [forward_ms]
"""
SUITE = Suite.model_construct(name="many", title="Many records", encodings=ENCODINGS, baseline="none", seeds=range(20))


@pytest.fixture
def records(make_record):
    """Ten thousand: peaks, times of five processes each, and accuracies of twenty seeds."""
    peaks = [CostCell(metric="peak_mib", encoding=one, length=n) for n, one in product(range(1, 1451), ENCODINGS)]
    times = [CostCell(metric="forward_ms", encoding=one, length=n) for n, one in product(range(1, 11), ENCODINGS)]
    tasks = [
        AccuracyCell(task="registers", encoding=one, seed=seed, train_length=n, test_lengths=(n, 2 * n))
        for n, seed, one in product(range(1, 51), SUITE.seeds, ENCODINGS)
    ]
    made = [make_record(cell, suite="many") for cell in (*peaks, *tasks)]
    made += [make_record(cell, suite="many", block_run=f"block-{run}") for run in range(5) for cell in times]
    assert len(made) == 10_000
    return made


def bench_expanding_ten_thousand_cells(guard, words):
    def expanded():
        suite = parse(TEXT, "many.yaml")
        return group(expand(suite), suite.baseline)

    assert sum(len(block.cells) for block in expanded()) == 10_000
    guard(expanded, words)


def bench_reading_ten_thousand_records(guard, words, records, tmp_path):
    store = Store(tmp_path)
    with store.writing("machine", "many") as writer:
        writer.append(records)
    guard(lambda: store.records("many"), words, rounds=20)


def bench_ranking_ten_thousand_records(guard, words, records):
    cells = {one.cell.id: one.cell for one in records}.values()
    metrics = Registry("metrics")
    guard(lambda: _rank(View.of(SUITE, cells, records, metrics)), words, rounds=20)


def _rank(view: View) -> list[object]:
    bench, courses = view.benches[0], view.courses
    ratios = [bench.against(grid, *key) for grid in bench.grids for key in grid.outcomes]
    means = [
        trial.accuracy(length, "recall") for course in courses for trial in course.trials for length in course.lengths
    ]
    assert len(ratios) == 5840
    return [*ratios, *means]


@pytest.mark.parametrize("name", Registry("renderers"))
def bench_rendering(guard, words, fabricated, name):
    report = build(fabricated.suite, fabricated.cells, fabricated.records, Registry("metrics"))
    renderer = Registry("renderers")[name].load()()
    guard(lambda: renderer.render(report), words)
