"""A report is the same bytes again, in another process, on another checkout and in another environment."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import grape_bench
from grape_bench.store import Store
from grape_bench.suite import expand, parse

HOME = Path(grape_bench.__file__).parents[1]
SUITE = """
title: Fabricated
encodings: [none, rope]
baseline: none
seeds: [0, 1]
cost:
  - {lengths: [256, 512, 1024], heads: [8], head_dim: [64], metrics: [forward_ms, peak_mib]}
accuracy:
  - {task: registers, train_length: 64, test_lengths: [64, 128, 256, 512]}
"""
FORMS = {".html", ".md", ".svg", ".pdf", ".png", ".tex"}


@pytest.fixture
def checkouts(make_record, tmp_path):
    """Two copies of the project with the same records, under unlike names."""
    records = [make_record(cell) for cell in expand(parse(SUITE, "fabricated.yaml"))]
    found = [tmp_path / "here", tmp_path / "some where" / "else"]
    for folder in found:
        shutil.copytree(HOME / "grape_bench", folder / "grape_bench", ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "suites").mkdir()
        (folder / "suites" / "fabricated.yaml").write_text(SUITE, encoding="utf-8")
        with Store(folder / "results").writing("fabricated-cpu-2-cores", "fabricated") as writer:
            writer.append(records)
    return found


def _report(folder, reports, **environment):
    words = ("report", "fabricated", "--reports", reports, "--figures", "pdf,png,svg", "--latex")
    subprocess.run(
        [sys.executable, "-m", "grape_bench", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), **environment},
        check=True,
        capture_output=True,
    )
    written = [path for path in sorted((folder / reports).rglob("*")) if path.is_file()]
    return {path.relative_to(folder / reports): path.read_bytes() for path in written}


def test_reports_are_the_same_bytes_twice_and_on_another_checkout(checkouts):
    here, elsewhere = checkouts
    first = _report(here, "reports", PYTHONHASHSEED="1", TZ="UTC")
    assert {path.suffix for path in first} == FORMS
    assert first == _report(here, "again", PYTHONHASHSEED="2", TZ="Asia/Tokyo", SOURCE_DATE_EPOCH="0")
    assert first == _report(elsewhere, "reports", PYTHONHASHSEED="3", LC_ALL="C")
    assert not [path for path, content in first.items() if str(here).encode() in content]
