"""A suite with every fault, and the suites that are shipped."""

from pathlib import Path

import pytest

from grape_bench.finding import Rule
from grape_bench.lint.catalogue import checks, rules
from grape_bench.lint.diagnosis import diagnose
from grape_bench.lint.subject import Machine
from grape_bench.origin import VARIABLE, announce, locate
from grape_bench.suite import load

HOME = Path(__file__).resolve().parents[2]
DATA = HOME / "tests" / "data"
LINES = {
    "GB101": "- sinusoidal + rope # GB101",
    "GB102": "test_lengths: [64, 128] # GB102",
    "GB103": "- learned # GB103",
    "GB104": "- clamp # GB104",
    "GB105": "- rope + window(tokens=32) # GB105",
    "GB106": "test_lengths: [64, 128] # GB106",
    "GB111": "- t5 # GB111",
    "GB112": "- rope(base=1e6) # GB112",
    "GB113": "- rope + fourier(heads='shared') # GB113",
    "GB114": "- rope + before_scale(alibi) # GB114",
    "GB115": "even: true # GB115",
    "GB116": "- HalfPositions # GB116",
    "GB121": "- kerple # GB121",
    "GB122": "- fox # GB122",
    "GB123": "- task: registers # GB123",
    "GB131": "- grape_a # GB131",
    "GB132": "- dynamic_ntk # GB132",
    "GB141": "- id: longer # GB141",
    "GB191": "# grape-bench: ignore[GB112]",
    "GB192": "- rope # grape-bench: ignore[GB101] and GB192, for there is none",
}


def test_a_suite_with_every_fault_lists_each_once_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "[]")
    announce([locate("encodings", f"{DATA / 'half_positions.py'}:HalfPositions")])
    path = DATA / "faulty.yaml"
    lines = path.read_text(encoding="utf-8").splitlines()
    found = diagnose(path, load(path), Machine(memory_gib=16, cores=2))
    assert sorted((one.code, lines[(one.place.line or 0) - 1].strip()) for one in found) == sorted(LINES.items())


def test_every_code_is_in_that_suite() -> None:
    assert [one.code for one in rules()] == list(LINES)


@pytest.mark.parametrize("path", sorted((HOME / "suites").glob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_suites_are_silent_on_small_and_large_machines(path: Path) -> None:
    suite = load(path)
    for machine in (Machine(memory_gib=2, cores=1), Machine(memory_gib=4096, cores=10**6)):
        assert diagnose(path, suite, machine) == []


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.code)
def test_a_rule_says_why_and_what_to_do(rule: Rule) -> None:
    assert rule.title[0].islower()
    assert not rule.title.endswith(".")
    assert rule.remedy.endswith(".")
    assert len(rule.why.split()) > 20


def test_a_finding_is_a_sentence_with_a_number_or_a_name(check) -> None:
    [one] = check("title: t\nencodings: [rope, sinusoidal + rope]\ncost: [{lengths: [8], metrics: [forward_ms]}]\n")
    assert (one.code, one.severity, one.place.line) == ("GB101", "warning", 2)
    assert one.reason == "sinusoidal adds positions to the tokens, and rope tells them again."


def test_a_fault_of_two_entries_is_told_once(check) -> None:
    entry = "{task: registers, train_length: 64, test_lengths: [64]}"
    found = check(f"title: t\nencodings: [rope, t5]\naccuracy: [{entry}, {entry.replace('64', '65')}]\n")
    assert [one.code for one in found] == ["GB111"]


def test_what_depends_on_the_machine_is_declared_so() -> None:
    assert {one.rule.code for one in checks() if one.of_machine} == {"GB121", "GB123"}
