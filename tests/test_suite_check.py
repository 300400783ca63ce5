"""The format of a suite: what is accepted, what is refused, and in which words."""

import json
import time
from pathlib import Path

import pytest

from grape_bench.errors import UserError
from grape_bench.suite import Suite, expand, parse, schema

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
        (
            "rope(base=1e6)",
            "rope(base='a')",
            "2: encodings[3]: \"rope(base='a')\": rope's base is float | tuple[float, float], not 'a'",
        ),
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
        (
            "seeds: [3, 0]",
            "effort: ful",
            "4: effort: the text 'ful' is not allowed. Did you mean 'full'? Allowed: full,",
        ),
        ("seeds: [3, 0]", "learned: .inf", "4: learned: must be a finite number, not Infinity"),
        ("seeds: [3, 0]", "learned: 0", "4: learned: must be more than 0, not 0"),
        ("seeds: [3, 0]", "block_minutes: yes", "4: block_minutes: must be a number, not the text 'yes'"),
        ("lengths: [256, 1024]", "lengths: [0]", "6: cost[0].lengths[0]: must be at least 1, not 0"),
        ("lengths: [256, 1024]", "scope: model", "6: cost[0].lengths: this key is missing"),
        ("heads: [4, 8]", "heads: [4, 8]\n    kv_heads: [3]", "8: cost[0].kv_heads: 4 heads do not divide into 3"),
        ("heads: [4, 8]", "layers: 2", "7: cost[0].layers: there are no layers in scope attention"),
        ("heads: [4, 8]", "causal: 1", "7: cost[0].causal: must be true or false, not 1"),
        ("heads: [4, 8]", "dtypes: [float33]", "7: cost[0].dtypes[0]: the text 'float33' is not allowed. Did you mean"),
        (
            "heads: [4, 8]",
            "backends: [sdpaa]",
            "7: cost[0].backends[0]: there is no backend named 'sdpaa'. Did you mean",
        ),
        ("heads: [4, 8]", "encodings: [t5]", "7: cost[0].encodings[0]: 't5' is not among the suite's encodings."),
        (
            "[forward_ms, peak_mib]",
            "[forward]",
            "8: cost[0].metrics[0]: there is no metric named 'forward'. Did you mean",
        ),
        ("[forward_ms, peak_mib]", "[accuracy]", "8: cost[0].metrics[0]: accuracy is no cost;"),
        ("[forward_ms, peak_mib]", "[train_step_ms]", "8: cost[0].metrics[0]: train_step_ms is not measured in scope"),
        ("registers(writes=2)", "register", "10: accuracy[0].task: there is no task named 'register'. Did you mean"),
        ("registers(writes=2)", "registers + registers", "10: accuracy[0].task: 'registers + registers' is a sum"),
        ("train_length: 64", "train_length: 65", "12: accuracy[0].test_lengths: the training length 65 must be among"),
        ("train_length: 64", "model: {heads: 5}", "11: accuracy[0].model: width 64 does not divide into 5 heads"),
        ("[64, 96]", "[64]\n    training: {lr: -1}", "13: accuracy[0].training.lr: must be more than 0, not -1"),
        ("[64, 96]", "[64]\n    training: {lrr: 1}", "13: accuracy[0].training.lrr: there is no key 'lrr' here. Did"),
        ("[64, 96]", "[64]\n    training: {shortest: 65}", "13: accuracy[0].training.shortest: 65 is longer than the"),
        (
            "[64, 96]",
            "[64]\n    training: {even: true}",
            "13: accuracy[0].training.even: one length is trained; give the",
        ),
        (
            "[64, 96]",
            "[64]\n    training: {adapt: 2}",
            "13: accuracy[0].training.adapt: a layer norm keeps no statistics",
        ),
        (
            "seeds: [3, 0]",
            "skips: [{only: [heads=4, lenght=8], reason: known}]",
            "4: skips[0].only[1]: filter 'lenght=8': there is no key 'lenght'. Did you mean 'length'?",
        ),
        (
            "seeds: [3, 0]",
            "skips: [{only: [encoding=roope], reason: known}]",
            "4: skips[0].only[0]: there is no encoding named 'roope'. Did you mean 'rope'?",
        ),
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
    started = time.process_time()
    [line] = refusal(f"{HEAD}cost:\n  - {{lengths: {axis}, batch: {axis}, metrics: [forward_ms]}}\n")
    assert line.endswith(f"{1999 * 1999 * 4:,} cells; a suite has at most 20,000")
    assert time.process_time() - started < 2


def test_the_schema_file_is_up_to_date() -> None:
    """Run `grape-bench schema > docs/suite.schema.json` where it is not."""
    assert json.loads((HOME / "docs" / "suite.schema.json").read_text(encoding="utf-8")) == schema()


def test_the_schema_describes_every_key() -> None:
    tree = schema()
    for part in (tree, *tree["$defs"].values()):
        assert part["additionalProperties"] is False
        assert all(key.get("description") for key in part["properties"].values())
    assert "name" not in tree["properties"]


LANGUAGE = "accuracy:\n  - task: text\n    train_length: 64\n    test_lengths: [64, 96]\n"


@pytest.mark.parametrize("model", ["", "    model: {width: 32}\n", "    model: {causal: false}\n"])
def test_a_language_model_that_sees_ahead_is_refused(model: str) -> None:
    assert any("a bidirectional model sees; write causal: true" in line for line in refusal(HEAD + LANGUAGE + model))


def test_controls_are_off_and_part_of_the_identity() -> None:
    plain, controlled = (
        expand(suite(f"{HEAD}{LANGUAGE}    model: {{causal: true}}\n{key}")) for key in ("", "    controls: true\n")
    )
    assert not any(cell.model_dump(exclude_defaults=True).get("controls") for cell in plain)
    assert all(cell.controls for cell in controlled)  # type: ignore[union-attr]
    assert not {cell.id for cell in plain} & {cell.id for cell in controlled}
