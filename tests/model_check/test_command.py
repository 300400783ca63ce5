"""`grape-bench check --model`: what it runs, prints and returns."""

import json
from pathlib import Path

import pytest

from grape_bench.cli import main
from grape_bench.model_check.rules import RULES

SMALL = Path(__file__).with_name("small.py").read_text(encoding="utf-8")
FACTORIES = """
def good():
    print("a word of its own")
    return Decoder(Rotary)

def doubled():
    return Decoder(Alibi, absolute=True)

def fails():
    raise RuntimeError("no weights here")

number = 3
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f"models_{tmp_path.name}"
    Path(f"{name}.py").write_text(SMALL + FACTORIES, encoding="utf-8")
    return name


@pytest.mark.parametrize("ending", ["", ".py"])
def test_a_module_or_a_file_names_a_factory(place, ending, capsys):
    assert main(["check", "--model", f"{place}{ending}:good"]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines()[-1] == f"{place}{ending}:good: 0 findings in 7 checks, 0 not made"
    assert f"runs the code of {place}{ending}:good" in said.err
    assert "a word of its own" not in said.out
    assert "a word of its own" in said.err


def test_a_file_may_be_called_as_a_module_that_is_loaded(place, capsys):
    Path("copy.py").write_text(f"from {place} import good as mine\n", encoding="utf-8")
    assert main(["check", "--model", "copy.py:mine"]) == 0
    assert "copy.py:mine: 0 findings" in capsys.readouterr().out


def test_a_finding_is_exit_code_1_with_its_module(place, capsys):
    assert main(["check", "--model", f"{place}:doubled"]) == 1
    first, remedy, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("absolute: warning GB201 The embeddings carry an absolute position (")
    assert remedy == "    remedy: Drop the one on the embeddings."


def test_json_is_one_document_whatever_the_factory_prints(place, capsys):
    main(["check", "--model", f"{place}:good", "--format", "json"])
    assert json.loads(capsys.readouterr().out)["findings"] == []
    assert main(["check", "--model", f"{place}:doubled", "--format", "json"]) == 1
    [finding] = json.loads(capsys.readouterr().out)["findings"]
    assert (finding["code"], finding["place"], finding["line"]) == ("GB201", "absolute", None)


def test_github_gets_an_annotation(place, capsys):
    main(["check", "--model", f"{place}:doubled", "--format", "github"])
    assert capsys.readouterr().out.startswith("::warning title=GB201::absolute: The embeddings carry")


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("{place}:god", "has no 'god'. Did you mean 'good'"),
        ("{place}:number", "number is a int; it must be callable"),
        ("{place}:fails", "it fails at "),
        ("{place}", "write pkg.module:factory or path/file.py:factory"),
        ("missing.py:good", "there is no such file"),
        ("missing_module:good", "No module named 'missing_module'"),
    ],
)
def test_a_wrong_word_is_exit_code_2_and_says_why(place, word, message, capsys):
    assert main(["check", "--model", word.format(place=place)]) == 2
    assert message in capsys.readouterr().err


def test_suites_and_a_model_are_not_checked_at_once(place, capsys):
    assert main(["check", "suites/smoke.yaml", "--model", f"{place}:good"]) == 2
    assert "one after the other" in capsys.readouterr().err


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_code_is_explained_and_stands_in_the_documentation(rule, capsys):
    assert main(["check", "--explain", rule.code]) == 0
    assert rule.why in capsys.readouterr().out
    page = Path(__file__).parents[2] / "docs" / "check-model.md"
    assert f"| {rule.code} |" in page.read_text(encoding="utf-8")
