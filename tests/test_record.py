"""Records as they are written: what of them is checked, and what is left out where it says nothing."""

import json
import re
from collections.abc import Callable

import pytest
from pydantic import ValidationError

from grape_bench.cell import CostCell
from grape_bench.gpu_reading import GpuReading
from grape_bench.record import AccuracyReading, MemoryReading, Record, RunStart, TimeReading, run_name

TIMED, PEAK = (CostCell(metric=one, encoding="rope", length=8) for one in ("forward_ms", "peak_mib"))
TIMES = TimeReading(samples_ms=(1.5,), wall_ms=(2.0,), clock="process_time")
GPU = GpuReading(mode="graph", flushed_mib=120.0, plain_ms=0.2, launch_bound=True)
SCORE = {"length": 64, "group": "recall", "correct": 800, "total": 1000, "blind": 0.25, "chance": 0.1}


def written(record: Record) -> dict[str, object]:
    found: dict[str, object] = json.loads(record.model_dump_json(by_alias=True))["reading"]
    return found


def test_a_record_of_a_cpu_has_no_key_of_a_gpu(make_record: Callable[..., Record]) -> None:
    times, peak = (make_record(TIMED, reading=TIMES), make_record(PEAK, reading=MemoryReading(peak_mib=1.0)))
    assert "gpu" not in written(times)
    assert "allocator" not in written(peak)
    there = make_record(TIMED, reading=TIMES.model_copy(update={"gpu": GPU}))
    assert Record.model_validate_json(there.model_dump_json(by_alias=True)) == there
    assert written(there)["gpu"] == json.loads(GPU.model_dump_json())


def test_a_reading_of_before_has_no_text_and_no_controls() -> None:
    values = {"headline": "recall", "scores": (SCORE,), "curve": (), "lr": 1e-3, "data_sha": "0", "parameters": 1}
    found = AccuracyReading.model_validate({**values, "train_s": 1.0, "train_cpu_s": 1.0})
    assert (found.text_sha, found.windowed, found.truncated) == (None, (), ())


@pytest.mark.parametrize(
    "at", ["2025-01-01", "2025-02-30T00:00:00Z", "2025-01-01T00:00:00+01:00", "1025-01-01T00:00:00Z"]
)
def test_a_moment_that_is_none_in_utc_is_refused(at: str) -> None:
    with pytest.raises(ValidationError):
        RunStart(run="r", suite="quick", at=at)


def test_the_name_of_a_run_is_its_second_and_four_digits_of_chance() -> None:
    assert re.fullmatch("20250102T030405-[0-9a-f]{4}", run_name("2025-01-02T03:04:05.678Z"))
