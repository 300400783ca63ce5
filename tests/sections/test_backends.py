"""The section on backends: ratios to the usual one, growth of memory, and what they said."""

from collections.abc import Callable
from typing import Any

import pytest

from grape_bench.cell import CostCell
from grape_bench.record import MemoryReading, Record, TimeReading
from grape_bench.registry import Registry
from grape_bench.report import build
from grape_bench.suite import Suite
from grape_bench.table import Report, Table

LENGTHS = (512, 1024, 2048)
TIMES = {"auto": 1.0, "sdpa": 2.5}
PEAKS = {"auto": lambda length: length / 64, "sdpa": lambda length: length**2 / 2**14}


@pytest.fixture
def report(make_record: Callable[..., Record]) -> Callable[..., Report]:
    def make(backends: tuple[str, ...] = ("auto", "sdpa"), notes: tuple[str, ...] = ()) -> Report:
        cells = [
            CostCell(metric=metric, encoding="t5", backend=backend, length=length)
            for metric in ("forward_ms", "peak_mib")
            for backend in backends
            for length in LENGTHS
        ]
        records = [make_record(cell, reading=reading(cell), notes=notes * (cell.backend == "auto")) for cell in cells]
        suite = Suite.model_construct(name="x", title="x", about="", encodings=("t5",), baseline=None)
        return build(suite, cells, records, Registry("metrics"))

    return make


def reading(cell: CostCell) -> Any:
    if cell.metric == "peak_mib":
        return MemoryReading(peak_mib=PEAKS[cell.backend](cell.length))
    samples = tuple(TIMES[cell.backend] * (1 + 0.01 * round) for round in range(8))
    return TimeReading(samples_ms=samples, wall_ms=samples, clock="process_time")


def tables(report: Report) -> dict[str, Table]:
    return {table.id: table for section in report.sections if section.id == "backends" for table in section.pieces}  # type: ignore[misc]


def test_each_backend_is_a_ratio_to_the_usual_one(report: Callable[..., Report]) -> None:
    found = tables(report())["bench-1-backends-1"]
    (row,) = found.rows
    assert (row[0].text, row[0].note) == ("t5", "auto")
    assert [entry.text for entry in row[1:]] == ["▼ 0.400"] * 3


def test_memory_grows_with_a_power_of_the_length(report: Callable[..., Report]) -> None:
    found = tables(report())["bench-1-backends-2-growth"]
    assert found.columns == ("encoding", "auto", "sdpa")
    assert [entry.text for entry in found.rows[0]] == ["t5", "1.00", "2.00"]


def test_what_a_backend_said_is_shown(report: Callable[..., Report]) -> None:
    found = tables(report(notes=("lifted", "float32 inside")))["backends-said"]
    said = {tuple(entry.text for entry in row) for row in found.rows}
    assert ("t5", "forward_ms", "auto", "float32", "lifted; float32 inside") in said
    assert len(said) == 2  # one for each metric


def test_one_backend_that_says_nothing_has_no_section(report: Callable[..., Report]) -> None:
    assert tables(report(backends=("sdpa",))) == {}
