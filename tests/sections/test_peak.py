"""The section on the peak: shares by hand, and silence where no peak is known."""

from collections.abc import Callable
from typing import Any

import pytest

from grape_bench.cell import CostCell
from grape_bench.environment import Environment
from grape_bench.record import Record, TimeReading
from grape_bench.registry import Registry
from grape_bench.report import build
from grape_bench.suite import Suite
from grape_bench.table import Section, Table

GPU = "NVIDIA H200"


@pytest.fixture
def section(make_record: Callable[..., Record], environment: Environment) -> Callable[..., Section | None]:
    def make(device: str = GPU, **changes: Any) -> Section | None:
        setting = {"length": 1024, "heads": 8, "head_dim": 128, "dtype": "bfloat16", "causal": True} | changes
        cells = [
            CostCell(metric=metric, encoding=encoding, **setting)
            for metric in ("forward_ms", "forward_backward_ms", "decode_ms")
            for encoding in ("none", "t5")
        ]
        here = environment.model_copy(update={"device": device})
        records = [
            make_record(one, environment=here, reading=reading())
            if one.encoding == "none"
            else make_record(one, environment=here, status="failed", fault="oom", message="no room")
            for one in cells
        ]
        suite = Suite.model_construct(name="x", title="x", about="", encodings=("none", "t5"), baseline=None)
        found = build(suite, cells, records, Registry("metrics")).sections
        return next((one for one in found if one.id == "peak"), None)

    return make


def reading() -> TimeReading:
    return TimeReading(samples_ms=(0.02,) * 6, wall_ms=(0.02,) * 6, clock="cuda_event")


def tables(section: Section) -> list[Table]:
    return [one for one in section.pieces if isinstance(one, Table)]


def test_shares_are_operations_over_time_and_peak(section: Callable[..., Section | None]) -> None:
    found = section()
    assert found is not None
    forward, both = tables(found)
    # 1024 * 1025 / 2 pairs, 8 heads of 128 channels, two operations, two or seven products; in 20 microseconds.
    pairs = 1024 * 1025 / 2 * 8 * 128 * 2
    assert forward.rows[1][1].text == f"{100 * 2 * pairs / 20e-6 / 989e12:.1f} %"
    assert both.rows[1][1].text == f"{100 * 7 * pairs / 20e-6 / 989e12:.1f} %"


def test_who_has_no_time_has_its_reason(section: Callable[..., Section | None]) -> None:
    found = section()
    assert found is not None
    entry = tables(found)[0].rows[2][1]
    assert (entry.text, entry.note) == ("failed", "oom")


@pytest.mark.parametrize("changes", [{"device": "cpu"}, {"device": "An unknown GPU"}, {"dtype": "float32"}])
def test_where_no_peak_is_known_there_is_no_section(
    section: Callable[..., Section | None], changes: dict[str, Any]
) -> None:
    assert section(**changes) is None
