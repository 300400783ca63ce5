"""From a suite to its cells and blocks."""

import math
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from grape_bench.cell import AccuracyCell, CostCell
from grape_bench.suite import Suite, expand, group, load, parse

HOME = Path(__file__).parents[1]
HEAD = "title: A test\nencodings: [none, rope, alibi, rope(base=1e6)]\n"
GRID = "cost:\n  - lengths: [256, 1024]\n    heads: [4, 8]\n    metrics: [forward_ms, peak_mib]\n"
TRAINING = "accuracy:\n  - task: registers(writes=2)\n    train_length: 64\n    test_lengths: [64, 96]\n"
FULL = f"{HEAD}baseline: none\nseeds: [3, 0]\n{GRID}{TRAINING}"


def suite(text: str) -> Suite:
    return parse(text, "suites/test.yaml")


def test_cells_are_every_combination() -> None:
    cells = expand(suite(FULL))
    cost = [cell for cell in cells if isinstance(cell, CostCell)]
    assert Counter((c.encoding, c.length, c.heads, c.metric) for c in cost) == {
        (encoding, length, heads, metric): 1
        for encoding in ("none", "rope", "alibi", "rope(base=1000000)")
        for length in (256, 1024)
        for heads in (4, 8)
        for metric in ("forward_ms", "peak_mib")
    }
    trainings = [(c.seed, c.encoding) for c in cells if isinstance(c, AccuracyCell)]
    assert len(set(trainings)) == len(trainings) == 8
    assert len({cell.id for cell in cells}) == len(cells) == 40


def test_a_cell_knows_the_versions_of_all_that_makes_its_number() -> None:
    text = "title: t\nencodings: [rope + fourier]\ncost:\n  - {lengths: [8], metrics: [train_step_ms], scope: model}\n"
    cost, training = expand(suite(text + TRAINING))
    assert {one.split("@")[0] for one in cost.versions} == {"rope", "fourier", "train_step_ms", "sdpa", "model"}
    named = {"rope", "fourier", "accuracy", "sdpa", "registers", "model", "recipe"}
    assert {one.split("@")[0] for one in training.versions} == named


def test_a_derived_metric_asks_for_its_source_once() -> None:
    text = f"{HEAD}cost:\n  - {{lengths: [8], scope: model, metrics: [tokens_per_second, train_step_ms]}}\n"
    assert [cell.metric for cell in expand(suite(text))] == ["train_step_ms"] * 4


def test_as_many_kv_heads_as_heads_is_one_setting_however_it_is_written() -> None:
    text = f"{HEAD}cost:\n  - {{lengths: [8], heads: [4], kv_heads: [null, 4, 2], metrics: [forward_ms]}}\n"
    assert Counter(cell.kv_heads for cell in expand(suite(text)) if cell.kind == "cost") == {None: 4, 2: 4}


def test_overlapping_grids_share_their_cells() -> None:
    more = "  - {lengths: [256], heads: [4], metrics: [forward_ms]}\n"
    assert len(expand(suite(f"{HEAD}{GRID}{more}"))) == len(expand(suite(f"{HEAD}{GRID}"))) == 32


def test_a_block_holds_all_encodings_of_one_setting_and_knows_its_baseline() -> None:
    found = suite(FULL.replace("[none, rope,", "[rope, none,"))
    blocks = [one for one in group(expand(found), found.baseline) if one.cells[0].metric == "forward_ms"]
    assert len(blocks) == 4
    assert all([c.encoding for c in b.cells] == ["rope", "none", "alibi", "rope(base=1000000)"] for b in blocks)
    assert {block.baseline for block in blocks} == {1}


def test_a_peak_of_memory_has_a_block_and_so_a_process_of_its_own() -> None:
    found = suite(FULL)
    blocks = [one for one in group(expand(found), found.baseline) if one.cells[0].metric == "peak_mib"]
    assert len(blocks) == 16
    assert {len(block.cells) for block in blocks} == {1}


def test_what_varies_within_a_block_is_named_by_the_suite() -> None:
    found = suite(f"{FULL}vary: [encoding, dtype]\n".replace("heads: [4, 8]", "dtypes: [float32, bfloat16]"))
    blocks = [one for one in group(expand(found), found.baseline, found.vary) if one.cells[0].metric == "forward_ms"]
    assert {(len(block.cells), len({cell.dtype for cell in block.cells})) for block in blocks} == {(8, 2)}
    assert {(block.cells[block.baseline].encoding, block.cells[block.baseline].dtype) for block in blocks} == {
        ("none", "float32")
    }


def test_trainings_come_after_cost_and_seed_by_seed() -> None:
    found = suite(f"{FULL}  - {{task: registers, train_length: 8, test_lengths: [8]}}\n")
    blocks = group(expand(found), found.baseline)
    assert [block.exclusive for block in blocks] == [True] * 20 + [False] * 16
    assert [block.cells[0].seed for block in blocks[20:]] == [3] * 8 + [0] * 8  # type: ignore[union-attr]
    assert [block.cells[0].encoding for block in blocks[20:24]] == list(found.encodings)


def test_a_grid_may_take_some_of_the_encodings_and_then_has_no_baseline() -> None:
    found = suite(FULL.replace("heads: [4, 8]", "encodings: [rope, alibi]"))
    block = group(expand(found), found.baseline)[0]
    assert ([cell.encoding for cell in block.cells], block.baseline) == (["rope", "alibi"], None)


def test_ten_thousand_cells_take_less_than_two_seconds() -> None:
    lengths = list(range(1, 2501))
    found = suite(f"{HEAD}baseline: rope\ncost:\n  - {{lengths: {lengths}, metrics: [forward_ms]}}\n")
    started = time.process_time()
    blocks = group(expand(found), found.baseline)
    assert time.process_time() - started < 2
    assert (len(blocks), {len(block.cells) for block in blocks}) == (2500, {4})


def test_a_suite_is_named_after_its_file(tmp_path: Path) -> None:
    path = tmp_path / "möbius-2.yaml"
    path.write_text(FULL, encoding="utf-8")
    assert load(path).name == "möbius-2"


@pytest.mark.parametrize("path", sorted((HOME / "suites").glob("*.yaml")), ids=lambda path: path.name)
def test_every_suite_of_the_project_is_right(path: Path) -> None:
    found = load(path)
    cells = expand(found)
    assert sum(len(block.cells) for block in group(cells, found.baseline)) == len(cells) > 0
    assert math.isfinite(found.block_minutes)


def test_the_front_end_imports_no_torch() -> None:
    modules = "grape_bench.store, grape_bench.ranking, grape_bench.suite, grape_bench.cli, grape_bench.listing"
    code = f"import {modules}, sys; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=HOME)
