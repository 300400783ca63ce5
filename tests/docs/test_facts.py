"""What the pages say of the code is what the code says of itself."""

from pathlib import Path

import pytest

from grape_bench.backends.auto import _TABLE
from grape_bench.bench import CONTENDED
from grape_bench.environment import COMPARED
from grape_bench.gate import TOLERANCE
from grape_bench.ranking import RATIO_MARGIN
from grape_bench.registry import Registry
from grape_bench.timing import EFFORTS

HOME = Path(__file__).resolve().parents[2]
DESIGN = (HOME / "docs" / "design.md").read_text(encoding="utf-8")
MEASURING = (HOME / "docs" / "measuring.md").read_text(encoding="utf-8")
BACKENDS = (HOME / "docs" / "backends.md").read_text(encoding="utf-8")
PACKAGE = HOME / "grape_bench"
MODULES = [path.stem for path in PACKAGE.glob("*.py") if path.stem != "__init__"]
FOLDERS = [f"{path.parent.name}/" for path in PACKAGE.glob("*/__init__.py")]


@pytest.mark.parametrize("name", MODULES + FOLDERS)
def test_every_module_is_on_the_map(name: str) -> None:
    assert f"`{name}`" in DESIGN.partition("## The modules")[2]


@pytest.mark.parametrize("name", COMPARED)
def test_what_must_match_is_named(name: str) -> None:
    assert name in DESIGN.partition("## Identity")[2].partition("##")[0]
    assert name in MEASURING.partition("## What may be compared")[2]


@pytest.mark.parametrize("name", EFFORTS)
def test_efforts_are_as_they_say(name: str) -> None:
    effort = EFFORTS[name]
    row = f"| `{name}` | {effort.pairs} | {effort.processes} | {effort.warmup} | {effort.sample_ms:g} ms |"
    assert row in MEASURING


@pytest.mark.parametrize("name", TOLERANCE)
def test_tolerances_are_as_they_say(name: str) -> None:
    assert f"| `{name}` | {TOLERANCE[name]:g} |" in MEASURING


def test_margins_are_as_they_say() -> None:
    assert f"a margin, {RATIO_MARGIN:.0%}".replace("%", " %") in MEASURING
    assert f"is above {CONTENDED:g}, other work" in MEASURING


def test_auto_chooses_by_the_table_that_is_shown() -> None:
    rows = [
        f"| {', '.join(sorted(row.kinds)) or 'none'} | {', '.join(sorted(row.when)) or 'always'} | `{row.backend}` |"
        for row in _TABLE
    ]
    shown = BACKENDS.partition("## What `auto` chooses")[2].partition("\n## ")[0]
    assert [line for line in shown.splitlines() if line.endswith("` |")] == rows


def test_every_backend_is_told_of() -> None:
    for name in Registry("backends"):
        assert f"| `{name}` |" in BACKENDS
