"""Findings: the same in three forms."""

import json

import pytest

from grape_bench.errors import UserError
from grape_bench.finding import Finding, Place, Remark, Rule, as_json, explain, github, text

IN_A_FILE = Finding("GB101", "warning", Place("suites/a,b.yaml", 7), "Two signals: 100 %.", "Drop one.")
IN_A_MODULE = Finding("GB203", "error", Place("layers.0.attn"), "The future leaks.", "Mask last.")
REMARK = Remark("GB206", "not checked", "it has no cache.")


def test_text_names_the_line_then_the_remedy():
    assert text([IN_A_FILE, IN_A_MODULE], [REMARK]).splitlines() == [
        "suites/a,b.yaml:7: warning GB101 Two signals: 100 %.",
        "    remedy: Drop one.",
        "layers.0.attn: error GB203 The future leaks.",
        "    remedy: Mask last.",
        "not checked: GB206 it has no cache.",
    ]


def test_text_of_nothing_is_empty():
    assert text([]) == ""


def test_json_keeps_every_field():
    read = json.loads(as_json([IN_A_FILE], [REMARK]))
    assert read == {
        "findings": [
            {
                "code": "GB101",
                "severity": "warning",
                "place": "suites/a,b.yaml",
                "line": 7,
                "reason": "Two signals: 100 %.",
                "remedy": "Drop one.",
            }
        ],
        "remarks": [{"code": "GB206", "kind": "not checked", "text": "it has no cache."}],
    }


def test_github_escapes_what_its_commands_give_a_meaning():
    assert github([IN_A_FILE]) == (
        "::warning file=suites/a%2Cb.yaml,line=7,title=GB101::Two signals: 100 %25. Drop one."
    )


def test_github_names_a_module_in_the_message():
    assert github([IN_A_MODULE], [REMARK]).splitlines() == [
        "::error title=GB203::layers.0.attn: The future leaks. Mask last.",
        "::notice title=GB206::not checked: it has no cache.",
    ]


def test_an_unknown_code_is_answered_with_the_nearest():
    rule = Rule("GB203", "error", "wrong order", "Mask last.", "Why it is wrong.")
    assert explain("GB203", [rule]).startswith("GB203 (error): wrong order\n\nWhy it is wrong.")
    with pytest.raises(UserError, match=r"'GB230' is no code of check\. Did you mean 'GB203'"):
        explain("GB230", [rule])
