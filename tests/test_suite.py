"""A suite's format: what is accepted, what is refused and in which words. Cells, blocks and filters."""

import json
import math
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from grape_bench.cell import AccuracyCell, CostCell
from grape_bench.errors import UserError
from grape_bench.suite import Suite, expand, group, load, narrow, parse, schema

HOME = Path(__file__).parents[1]
HEAD = "title: A test\nencodings: [none, rope, alibi, rope(base=1e6)]\n"
GRID = "cost:\n  - lengths: [256, 1024]\n    heads: [4, 8]\n    metrics: [forward_ms, peak_mib]\n"
TRAINING = "accuracy:\n  - task: registers(writes=2)\n    train_length: 64\n    test_lengths: [64, 96]\n"
FULL = f"{HEAD}baseline: none\nseeds: [3, 0]\n{GRID}{TRAINING}"


def suite(text: str) -> Suite:
    return parse(text, "suites/test.yaml")


def refusal(text: str) -> list[str]:
    with pytest.raises(UserError) as caught:
        suite(text)
    return str(caught.value).splitlines()


def test_a_full_suite_is_read() -> None:
    found = suite(FULL)
    assert (found.name, found.title, found.baseline) == ("test", "A test", "none")
    assert found.encodings == ("none", "rope", "alibi", "rope(base=1000000)")
    assert found.accuracy[0].task == "registers(writes=2)"
    assert (found.effort, found.learned, found.block_minutes) == ("quick", 0.75, 30)


def test_defaults_of_a_grid_are_those_of_its_cells() -> None:
    [cell] = expand(suite("title: t\nencodings: [rope]\ncost:\n  - {lengths: [8], metrics: [forward_ms]}\n"))
    assert cell.model_dump(exclude={"versions"}, exclude_defaults=True) == {
        "metric": "forward_ms",
        "encoding": "rope",
        "length": 8,
    }


def test_whole_numbers_may_be_written_as_floats() -> None:
    text = FULL.replace("train_length: 64", "train_length: 6.4e1\n    training: {steps: 1e3, lr: 1}")
    assert suite(text).accuracy[0].training.steps == 1000


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("title: A test", "title: 2024", "1: title: must be text, not 2024; put it in quotes"),
        ("title: A test", "title: ''", "1: title: is empty"),
        ("title: A test", "titel: A test", "1: titel: there is no key 'titel' here. Did you mean 'title'?"),
        ("none, rope,", "none, roope,", "2: encodings[1]: there is no encoding named 'roope'. Did you mean 'rope'?"),
        ("none, rope,", "none, rope, rope(base=1e4),", "2: encodings[2]: rope is listed twice; item [1] is the same"),
        ("rope(base=1e6)", "rope(bass=1e6)", "2: encodings[3]: 'rope(bass=1e6)': rope has no option 'bass'."),
        ("rope(base=1e6)", "rope(base=big)", "2: encodings[3]: 'rope(base=big)': base=big is not a literal value"),
        ("rope(base=1e6)", "rope(base='a')", "2: encodings[3]: \"rope(base='a')\": rope's base is float, not 'a'"),
        ("none, rope,", "~, rope,", "2: encodings[0]: must be text, not null"),
        ("none, rope,", "{a: 1}, rope,", "2: encodings[0]: must be text, not a mapping"),
        ("baseline: none", "baseline: t5", "3: baseline: 't5' is not among the suite's encodings."),
        ("baseline: none", "baseline: null", "3: baseline: must be text, not null; the encoding is the word none"),
        ("seeds: [3, 0]", "seeds: [3, 3]", "4: seeds[1]: 3 is listed twice"),
        ("seeds: [3, 0]", "seeds: [-1]", "4: seeds[0]: must be at least 0, not -1"),
        ("seeds: [3, 0]", "seeds: [true]", "4: seeds[0]: must be a whole number, not true"),
        ("seeds: [3, 0]", "seeds: ['3']", "4: seeds[0]: must be a whole number, not the text '3'"),
        ("seeds: [3, 0]", "seeds: [1.5]", "4: seeds[0]: must be a whole number, not 1.5"),
        ("seeds: [3, 0]", "seeds: 3", "4: seeds: must be a list, such as [a, b], not 3"),
        ("seeds: [3, 0]", "seeds: []", "4: seeds: is empty; give at least one"),
        ("seeds: [3, 0]", "seeds:", "4: seeds: has no value; give one or remove the key"),
        ("seeds: [3, 0]", "effort: ful", "4: effort: the text 'ful' is not allowed. Did you mean 'full'? Allowed: full,"),
        ("seeds: [3, 0]", "learned: .inf", "4: learned: must be a finite number, not Infinity"),
        ("seeds: [3, 0]", "learned: 0", "4: learned: must be more than 0, not 0"),
        ("seeds: [3, 0]", "block_minutes: yes", "4: block_minutes: must be a number, not the text 'yes'"),
        ("lengths: [256, 1024]", "lengths: [0]", "6: cost[0].lengths[0]: must be at least 1, not 0"),
        ("lengths: [256, 1024]", "scope: model", "6: cost[0].lengths: this key is missing"),
        ("heads: [4, 8]", "heads: [4, 8]\n    kv_heads: [3]", "8: cost[0].kv_heads: 4 heads do not divide into 3"),
        ("heads: [4, 8]", "layers: 2", "7: cost[0].layers: there are no layers in scope attention"),
        ("heads: [4, 8]", "causal: 1", "7: cost[0].causal: must be true or false, not 1"),
        ("heads: [4, 8]", "dtypes: [float33]", "7: cost[0].dtypes[0]: the text 'float33' is not allowed. Did you mean"),
        ("heads: [4, 8]", "backends: [sdpaa]", "7: cost[0].backends[0]: there is no backend named 'sdpaa'. Did you mean"),
        ("heads: [4, 8]", "encodings: [t5]", "7: cost[0].encodings[0]: 't5' is not among the suite's encodings."),
        ("[forward_ms, peak_mib]", "[forward]", "8: cost[0].metrics[0]: there is no metric named 'forward'. Did you mean"),
        ("[forward_ms, peak_mib]", "[accuracy]", "8: cost[0].metrics[0]: accuracy is no cost;"),
        ("[forward_ms, peak_mib]", "[train_step_ms]", "8: cost[0].metrics[0]: train_step_ms is not measured in scope"),
        ("registers(writes=2)", "register", "10: accuracy[0].task: there is no task named 'register'. Did you mean"),
        ("registers(writes=2)", "registers + registers", "10: accuracy[0].task: 'registers + registers' is a sum"),
        ("train_length: 64", "train_length: 65", "12: accuracy[0].test_lengths: the training length 65 must be among"),
        ("train_length: 64", "model: {heads: 5}", "11: accuracy[0].model: width 64 does not divide into 5 heads"),
        ("[64, 96]", "[64]\n    training: {lr: -1}", "13: accuracy[0].training.lr: must be more than 0, not -1"),
        ("[64, 96]", "[64]\n    training: {lrr: 1}", "13: accuracy[0].training.lrr: there is no key 'lrr' here. Did"),
        ("[64, 96]", "[64]\n    training: {shortest: 65}", "13: accuracy[0].training.shortest: 65 is longer than the"),
        ("[64, 96]", "[64]\n  - 17", "13: accuracy[1]: must be a mapping of keys to values, not 17"),
    ],
)
def test_an_error_names_file_line_key_and_what_is_allowed(old: str, new: str, error: str) -> None:
    assert old in FULL
    assert any(line.startswith(f"suites/test.yaml:{error}") for line in refusal(FULL.replace(old, new, 1)))


def test_all_errors_of_a_file_are_reported_together() -> None:
    text = FULL.replace("rope,", "roope,").replace("[3, 0]", "[-1, x]").replace("64, 96", "64, 0")
    assert [line.split(": ")[1] for line in refusal(text)] == [
        "encodings[1]",
        "seeds[0]",
        "seeds[1]",
        "accuracy[0].test_lengths[1]",
    ]


def test_an_expression_cut_at_its_comma_is_explained() -> None:
    assert "needs quotes" in refusal(FULL.replace("rope(base=1e6)", "rope(base=1e6, layout='half')"))[0]


@pytest.mark.parametrize("text", ["", "# nothing\n", "[a, b]", "words"])
def test_a_file_that_is_no_mapping_is_refused_in_one_line(text: str) -> None:
    assert len(refusal(text)) == 1


def test_a_suite_that_measures_nothing_is_refused() -> None:
    assert refusal(HEAD) == ["suites/test.yaml:1: there is nothing to measure; give 'cost', 'accuracy' or both"]


def test_a_suite_without_end_is_refused_at_once() -> None:
    axis = f"[{', '.join(map(str, range(1, 2000)))}]"
    started = time.perf_counter()
    [line] = refusal(f"{HEAD}cost:\n  - {{lengths: {axis}, batch: {axis}, metrics: [forward_ms]}}\n")
    assert line.endswith(f"{1999 * 1999 * 4:,} cells; a suite has at most 1,000,000")
    assert time.perf_counter() - started < 2


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
    blocks = [block for block in group(expand(found), found.baseline) if block.exclusive]
    assert len(blocks) == 8
    assert all([c.encoding for c in b.cells] == ["rope", "none", "alibi", "rope(base=1000000)"] for b in blocks)
    assert {block.baseline for block in blocks} == {1}


def test_trainings_come_after_cost_and_seed_by_seed() -> None:
    found = suite(f"{FULL}  - {{task: registers, train_length: 8, test_lengths: [8]}}\n")
    blocks = group(expand(found), found.baseline)
    assert [block.exclusive for block in blocks] == [True] * 8 + [False] * 16
    assert [block.cells[0].seed for block in blocks[8:]] == [3] * 8 + [0] * 8  # type: ignore[union-attr]
    assert [block.cells[0].encoding for block in blocks[8:12]] == list(found.encodings)


def test_a_grid_may_take_some_of_the_encodings_and_then_has_no_baseline() -> None:
    found = suite(FULL.replace("heads: [4, 8]", "encodings: [rope, alibi]"))
    block = group(expand(found), found.baseline)[0]
    assert ([cell.encoding for cell in block.cells], block.baseline) == (["rope", "alibi"], None)


def test_ten_thousand_cells_take_less_than_two_seconds() -> None:
    lengths = list(range(1, 2501))
    found = suite(f"{HEAD}baseline: rope\ncost:\n  - {{lengths: {lengths}, metrics: [forward_ms]}}\n")
    started = time.perf_counter()
    blocks = group(expand(found), found.baseline)
    assert time.perf_counter() - started < 2
    assert (len(blocks), {len(block.cells) for block in blocks}) == (2500, {4})


def narrowed(*only: str) -> list[tuple[object, ...]]:
    found = suite(FULL)
    blocks = narrow(group(expand(found), found.baseline), only)
    return [(b.cells[0].kind, tuple(c.encoding for c in b.cells), b.baseline) for b in blocks]


def test_no_filter_keeps_all() -> None:
    assert len(narrowed()) == 16


def test_a_filter_by_encoding_keeps_the_baseline_of_cost() -> None:
    found = narrowed("encoding=rope(base = 1e6)")
    assert found == [("cost", ("none", "rope(base=1000000)"), 0)] * 8 + [("accuracy", ("rope(base=1000000)",), None)] * 2


def test_filters_of_one_key_are_alternatives_and_of_two_keys_must_both_hold() -> None:
    assert len(narrowed("length=256", "length=1024")) == 8
    assert len(narrowed("length=256", "heads=4", "metric=forward_ms")) == 1
    assert len(narrowed("kind=accuracy", "seed=0", "encoding=rope", "encoding=alibi")) == 2
    assert len(narrowed("task=registers(writes=2.0)")) == 8
    assert len(narrowed("causal=False", "kv_heads=4")) == 4


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


def test_a_suite_is_named_after_its_file(tmp_path: Path) -> None:
    path = tmp_path / "möbius-2.yaml"
    path.write_text(FULL, encoding="utf-8")
    assert load(path).name == "möbius-2"


def test_the_schema_file_is_up_to_date() -> None:
    """Run `grape-bench schema > docs/suite.schema.json` where it is not."""
    assert json.loads((HOME / "docs" / "suite.schema.json").read_text(encoding="utf-8")) == schema()


def test_the_schema_describes_every_key() -> None:
    tree = schema()
    for part in (tree, *tree["$defs"].values()):
        assert part["additionalProperties"] is False
        assert all(key.get("description") for key in part["properties"].values())
    assert "name" not in tree["properties"]


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
