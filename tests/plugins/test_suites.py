"""Where a suite measures what the command line names, and what becomes of the cells' identity."""

from pathlib import Path

import pytest
from outside import ENCODINGS, SUITE

from grape_bench import suite
from grape_bench.cell import CostCell
from grape_bench.errors import UserError
from grape_bench.origin import announce, locate


def cells(text: str = SUITE.format(more="")) -> dict[tuple[str, str, str], tuple[str, ...]]:
    """Versions by metric, backend and encoding."""
    found = suite.expand(suite.parse(text, "tiny.yaml"))
    return {(one.metric, one.backend, one.encoding): one.versions for one in found}


def test_a_named_encoding_joins_all_lists_but_an_entrys_own() -> None:
    announce([locate("encodings", "mine.py:Mine")])
    found = set(cells())
    assert ("forward_ms", "sdpa", "Mine") in found
    assert ("peak_mib", "eager", "Mine") not in found


def test_a_named_encoding_that_the_suite_speaks_of_is_not_added() -> None:
    announce([locate("encodings", "mine.py:Mine")])
    written = {encoding for _, _, encoding in cells(SUITE.format(more="Mine(reach=2) + rope, "))}
    assert written == {"none", "rope", "Mine(reach=2) + rope"}


def test_a_named_backend_joins_every_cost_entry() -> None:
    announce([locate("backends", "kernel.py:Kernel")])
    assert {backend for _, backend, _ in cells()} == {"sdpa", "eager", "Kernel"}


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("encoding=Mine", {("sdpa", "none"), ("sdpa", "Mine"), ("Kernel", "none"), ("Kernel", "Mine")}),
        ("backend=Kernel", {("Kernel", "none"), ("Kernel", "rope"), ("Kernel", "Mine")}),
    ],
)
def test_only_what_was_named_may_be_measured_beside_its_baseline(word: str, expected: set[tuple[str, str]]) -> None:
    announce([locate("encodings", "mine.py:Mine"), locate("backends", "kernel.py:Kernel")])
    tiny = suite.parse(SUITE.format(more=""), "tiny.yaml")
    blocks = suite.narrow(suite.group(suite.expand(tiny), tiny.baseline), [word])
    found = [cell for block in blocks for cell in block.cells if isinstance(cell, CostCell)]
    assert {(one.backend, one.encoding) for one in found} == expected


@pytest.mark.parametrize(
    ("kind", "word", "text", "sentence"),
    [
        (
            "encodings",
            "mine.py:Mine",
            "cost:\n  - {lengths: [8], metrics: [forward_ms], encodings: [none]}\n",
            "of its own",
        ),
        (
            "backends",
            "kernel.py:Kernel",
            "accuracy:\n  - {task: registers, train_length: 8, test_lengths: [8]}\n",
            "cost",
        ),
    ],
)
def test_a_suite_without_a_place_for_it_says_so(kind: str, word: str, text: str, sentence: str) -> None:
    announce([locate(kind, word)])
    with pytest.raises(UserError, match=rf"no place for .*{sentence}"):
        suite.parse(f"title: x\nencodings: [none]\n{text}", "x.yaml")


def test_a_changed_source_is_a_new_cell(folder: Path) -> None:
    announce([locate("encodings", "mine.py:Mine")])
    before = cells()
    (folder / "mine.py").write_text(ENCODINGS.replace("<=", "<"))
    announce([locate("encodings", "mine.py:Mine")])
    changed = {key for key, versions in cells().items() if versions != before[key]}
    assert changed == {("forward_ms", "sdpa", "Mine")}
    assert [one.split("+")[0] for one in cells()["forward_ms", "sdpa", "Mine"]][:1] == ["Mine@1"]
