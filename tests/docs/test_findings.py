"""README's figures and docs/findings.md are what the committed records say; `python scripts/findings.py --write`."""

import json
import re
import statistics
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

HOME = Path(__file__).resolve().parents[2]
README = (HOME / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def findings(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("findings")


def test_the_pages_have_what_the_records_say(findings: ModuleType) -> None:
    for (path, name), make in findings.PARTS.items():
        page = (HOME / path).read_text(encoding="utf-8")
        assert findings.written(page, name, make()) == page, "run python scripts/findings.py --write"


def test_every_figure_of_readme_is_that_of_a_claim_which_is_decided(findings: ModuleType) -> None:
    known, quoted = findings.figures(), findings.in_prose(README)
    assert len(quoted) >= 5
    for figure in quoted:
        assert figure in known, f"no claim of a suite has {figure}"
        assert all(one.word != "undecided" for _, one in known[figure])


def test_every_claim_of_the_article_has_a_verdict(findings: ModuleType) -> None:
    page = (HOME / "docs" / "findings.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| C(\d+)[^|]* \| .* \| \*\*(?:supported|refuted|undecided)\*\* ", page, re.MULTILINE)
    assert {int(one) for one in told} == {*range(1, 15)}


def test_a_mean_of_the_table_by_hand() -> None:
    """RoPE on task C at twice the training length: the last record of each seed, as it stands in its line."""
    right: dict[int, float] = {}
    for path in (HOME / "results").glob("*/source-table-cpu.jsonl"):
        for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            cell = line.get("cell", {})
            if (cell.get("task"), cell["encoding"] if cell else "") == ("registers", "rope") and cell["tune"]:
                (score,) = [
                    one for one in line["reading"]["scores"] if (one["length"], one["group"]) == (128, "recall")
                ]
                right[cell["seed"]] = score["correct"] / score["total"]
    assert len(right) == 5
    row = next(line for line in README.splitlines() if line.startswith("| `rope` "))
    assert row.split(" | ")[3].startswith(f"{statistics.mean(right.values()):.3f}"[1:])
