"""What a GPU did, from readings that are written down here."""

from types import MappingProxyType

import pytest

from grape_bench.cell import CostCell
from grape_bench.gpu_reading import GpuReading, GpuState
from grape_bench.record import TimeReading
from grape_bench.report import build
from grape_bench.suite import Suite

COOL = GpuState(sm_mhz=1980, power_w=300.4, temperature_c=41)
WARM = GpuState(sm_mhz=1920, power_w=655.6, temperature_c=63, reasons=("power cap",))


@pytest.fixture
def section(make_record):
    """The section over one reading of each encoding; None where there is none."""

    def make(readings):
        cells = [CostCell(metric="forward_ms", encoding=name, length=64) for name in readings]
        suite = Suite.model_construct(name="gpu", title="GPU", encodings=tuple(readings), baseline=None)
        records = [
            make_record(cell, reading=TimeReading(samples_ms=(1.0,), wall_ms=(1.0,), clock="cuda_event", gpu=gpu))
            for cell, gpu in zip(cells, readings.values(), strict=True)
        ]
        report = build(suite, cells, records, MappingProxyType({}))
        return next((one for one in report.sections if one.id == "gpu"), None)

    return make


def row(section):
    [table] = section.pieces
    [row] = table.rows
    return [(entry.text, entry.note) for entry in row]


def reading(**more):
    return GpuReading(**{"mode": "graph", "flushed_mib": 100, "plain_ms": 0.1, "launch_bound": False, **more})


def test_a_cpu_has_no_such_section(section):
    assert section({"rope": None}) is None


def test_clocks_power_and_heat_are_ranges_over_all_that_was_seen(section):
    found = row(section({"rope": reading(states=(COOL, WARM)), "alibi": reading(states=(COOL,))}))
    assert found[0][0] == "forward_ms, attention"
    assert [text for text, _ in found[3:6]] == ["1920 to 1980 MHz", "300 to 656 W", "41 to 63 °C"]
    assert found[5][1] == "power cap"
    assert found[6] == ("none", "")


def test_launch_bound_readings_are_counted(section):
    assert row(section({"rope": reading(launch_bound=True), "alibi": reading()}))[2][0] == "1 of 2"


def test_what_was_not_captured_says_why(section):
    found = row(section({"rope": reading(), "alibi": reading(mode="events", uncaptured="it waits for the device")}))
    assert found[1] == ("events: 1, replays of a graph: 1", "1 could not be captured: it waits for the device")


def test_rounds_that_were_measured_again_are_told_with_the_reason(section):
    found = row(section({"rope": reading(discarded=("it was hot", "it was hot")), "alibi": reading()}))
    assert found[6] == ("in 1 reading", "it was hot")


def test_a_gpu_that_nobody_could_watch_says_so(section):
    assert row(section({"rope": reading(unwatched="NVML does not answer")}))[3][1] == "NVML does not answer"
