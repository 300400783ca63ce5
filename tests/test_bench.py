"""Grids of cost: medians, ratios within a process, and what cannot be compared."""

import pytest

from grape_bench.bench import Bench, Setting, contention, value
from grape_bench.cell import CostCell
from grape_bench.outcome import machines
from grape_bench.record import MemoryReading, TimeReading


def _cell(encoding, **changes):
    return CostCell(**({"metric": "forward_ms", "encoding": encoding, "length": 128} | changes))


def _time(*samples, slow=1.0):
    return TimeReading(samples_ms=samples, wall_ms=tuple(one * slow for one in samples), clock="process_time")


def _bench(cells, records):
    return Bench.of(cells, machines(records)[0], "none")


def test_a_setting_is_all_but_encoding_metric_and_length():
    cells = [_cell("none"), _cell("rope", length=256), _cell("rope", metric="decode_ms"), _cell("none", heads=4)]
    first, *rest = (Setting.of(cell) for cell in cells)
    assert [first == one for one in rest] == [True, True, False]
    assert str(first) == "float32, 8 heads of 64, batch 1, sdpa"
    assert str(Setting.of(_cell("none", kv_heads=2, causal=True))).startswith("float32, 8 heads (2 of keys) of 64")
    assert str(first._replace(backend="")) == "float32, 8 heads of 64, batch 1"


def test_the_absolute_figure_is_the_median_over_all_processes(make_record):
    cell = _cell("none")
    records = [make_record(cell, block_run=run, reading=_time(*ms)) for run, ms in (("a", (1, 2)), ("b", (3, 4, 50)))]
    (grid,) = _bench([cell], records).grids
    assert value(grid.outcomes["none", 128]) == 3


def test_a_ratio_stays_within_a_process(make_record):
    cells = [_cell("none"), _cell("rope")]
    beside = [make_record(cells[0], reading=_time(1, 2, 3)), make_record(cells[1], reading=_time(2, 4, 6))]
    bench = _bench(cells, beside)
    assert bench.against(bench.grids[0], "rope", 128).interval.mid == pytest.approx(2)
    apart = [beside[0], make_record(cells[1], block_run="elsewhere", reading=_time(2, 4, 6))]
    bench = _bench(cells, apart)
    assert bench.against(bench.grids[0], "rope", 128) is None


def test_a_member_pairs_with_the_baseline_of_its_own_run(make_record):
    """A later run measured the baseline again with another member; the first pair still holds."""
    cells = [_cell("none"), _cell("rope")]
    records = [
        make_record(cells[0], block_run="first", run="one", reading=_time(1, 1, 1)),
        make_record(cells[1], block_run="first", run="one", reading=_time(2, 2, 2)),
        make_record(cells[0], block_run="later", run="two", at="2024-02-01T00:00:00Z", reading=_time(5, 5, 5)),
    ]
    bench = _bench(cells, records)
    assert bench.against(bench.grids[0], "rope", 128).interval.mid == pytest.approx(2)


def test_memory_compares_across_processes(make_record):
    cells = [_cell("none", metric="peak_mib"), _cell("rope", metric="peak_mib")]
    records = [
        make_record(cell, block_run=cell.encoding, reading=MemoryReading(peak_mib=mib))
        for cell, mib in zip(cells, (10, 15), strict=True)
    ]
    bench = _bench(cells, records)
    assert bench.against(bench.grids[0], "rope", 128).word == "larger"


def test_the_control_is_the_baseline_against_itself(make_record):
    cell = _cell("none")
    records = [make_record(cell, reading=_time(2, 4, 6)), make_record(cell, role="control", reading=_time(3, 6, 9))]
    bench = _bench([cell], records)
    assert bench.control(bench.grids[0], 128).interval.mid == pytest.approx(1.5)
    assert _bench([cell], records[:1]).control(bench.grids[0], 128) is None


def test_a_failed_baseline_leaves_absolute_figures(make_record):
    cells = [_cell("none"), _cell("rope")]
    records = [make_record(cells[0], status="failed", fault="oom", message="no"), make_record(cells[1])]
    bench = _bench(cells, records)
    assert bench.against(bench.grids[0], "rope", 128) is None
    assert value(bench.grids[0].outcomes["rope", 128])
    assert value(bench.grids[0].outcomes["none", 128]) is None


def test_contention_is_the_median_of_wall_over_cpu(make_record):
    cell = _cell("none")
    (grid,) = _bench([cell], [make_record(cell, reading=_time(1, 2, 3, slow=1.25))]).grids
    assert contention(grid.outcomes["none", 128].records) == pytest.approx(1.25)
    events = TimeReading(samples_ms=(1.0,), wall_ms=(2.0,), clock="cuda_event")
    (grid,) = _bench([cell], [make_record(cell, reading=events)]).grids
    assert contention(grid.outcomes["none", 128].records) is None
