"""Suites in the hands of the checks."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from grape_bench.finding import Finding
from grape_bench.lint.diagnosis import diagnose
from grape_bench.lint.subject import Machine
from grape_bench.record import Record
from grape_bench.suite import load

MACHINE = Machine(memory_gib=16, cores=2)

Check = Callable[..., list[Finding]]


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """The findings of a suite's text on a machine of 16 GiB and 2 cores."""

    def found(text: str, machine: Machine = MACHINE, records: Sequence[Record] = ()) -> list[Finding]:
        path = tmp_path / "suite.yaml"
        path.write_text(text, encoding="utf-8")
        return diagnose(path, load(path), machine, records)

    return found
