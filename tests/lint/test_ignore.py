"""Ignore comments: where they count, and what is wrong with them."""

import pytest

from grape_bench.lint.ignore import ignores

STACKED = """title: A test
encodings:
  - rope
  - sinusoidal + rope{beside}
cost: [{{lengths: [8], metrics: [forward_ms]}}]
"""


def test_a_comment_on_the_line_hides_its_finding(check) -> None:
    assert check(STACKED.format(beside=" # grape-bench: ignore[GB101] asked for")) == []


@pytest.mark.parametrize("between", ["", "  # what stands below is an experiment\n", "\n"])
def test_a_comment_above_hides_the_finding_of_the_next_line_with_content(check, between: str) -> None:
    comment = f"  # grape-bench: ignore[GB101] asked for\n{between}"
    text = STACKED.format(beside="")
    assert check(text.replace("  - sinusoidal", f"{comment}  - sinusoidal")) == []


def test_a_comment_two_lines_of_content_above_hides_nothing(check) -> None:
    text = STACKED.format(beside="").replace("  - rope\n", "  # grape-bench: ignore[GB101] too early\n  - rope\n")
    assert [(one.code, one.place.line) for one in check(text)] == [("GB192", 3), ("GB101", 5)]


def test_one_comment_may_name_several_codes(check) -> None:
    [one] = check(STACKED.format(beside=" # grape-bench: ignore[GB101, GB112] asked for"))
    assert (one.code, one.reason) == ("GB192", "there is no finding 'GB112' in line 4.")


def test_a_comment_without_a_reason_hides_and_is_a_finding_itself(check) -> None:
    [one] = check(STACKED.format(beside=" # grape-bench: ignore[GB101]"))
    assert (one.code, one.place.line) == ("GB191", 4)


def test_an_unknown_code_ignores_nothing(check) -> None:
    found = check(STACKED.format(beside=" # grape-bench: ignore[GB999] a slip"))
    assert [one.code for one in found] == ["GB101", "GB192"]


def test_what_another_machine_may_find_can_be_ignored_here(check) -> None:
    text = STACKED.format(beside="").replace(
        "sinusoidal + rope", "alibi # grape-bench: ignore[GB121] for small machines"
    )
    assert check(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "title: 'see # grape-bench: ignore[GB101] there'\n",
        "about: >\n  Write\n  # grape-bench: ignore[GB101] so\n  there.\nseeds: [0]\n",
    ],
)
def test_a_comment_within_a_value_is_none(text: str) -> None:
    assert ignores(text) == ()


def test_a_comment_behind_a_folded_text_is_one() -> None:
    [one] = ignores("about: >\n  Some text.\n# grape-bench: ignore[GB112] asked for\nseeds: [0]\n")
    assert (one.line, one.target, one.codes, one.reason) == (3, 4, ("GB112",), "asked for")
