"""The codes of docs/check.md are made from the rules, by `python tests/docs/test_check_page.py`."""

import re
from collections.abc import Iterator
from pathlib import Path

from grape_bench.finding import Rule
from grape_bench.lint.catalogue import rules
from grape_bench.model_check.rules import RULES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "check.md"
BEGIN, END = "<!-- codes -->\n", "<!-- /codes -->\n"


def test_the_codes_are_those_of_the_rules() -> None:
    assert PAGE.read_text(encoding="utf-8") == renewed(), "run `python tests/docs/test_check_page.py`"


def test_codes_are_unique_and_every_one_that_the_page_names_exists() -> None:
    codes = [one.code for one in (*rules(), *RULES)]
    assert len(set(codes)) == len(codes)
    assert set(re.findall(r"GB\d+", PAGE.read_text(encoding="utf-8"))) == set(codes)


def test_the_cheat_sheet_has_all_nine_symptoms() -> None:
    sheet = PAGE.read_text(encoding="utf-8").partition("## The article's cheat sheet")[2].partition("\n## ")[0]
    assert sheet.count("\n| ") == 1 + 9


def renewed() -> str:
    """The page with fresh codes."""
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    parts = [*table(), *map(section, rules()), "Of models, by `check --model`:", *map(section, RULES)]
    return f"{head}{BEGIN}" + "\n\n".join(parts) + f"\n{END}{rest.partition(END)[2]}"


def table() -> Iterator[str]:
    rows = [f"| {one.code} | {one.severity} | {one.title} |" for one in (*rules(), *RULES)]
    yield "\n".join(["| code | severity | fault |", "|---|---|---|", *rows])


def section(rule: Rule) -> str:
    return f"### {rule.code}\n\n{rule.title[0].upper()}{rule.title[1:]}. {rule.why}\n\n*Remedy.* {rule.remedy}"


if __name__ == "__main__":
    PAGE.write_text(renewed(), encoding="utf-8")
