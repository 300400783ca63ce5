"""What makes two costs incomparable, from the environment to every ranking."""

from collections.abc import Callable
from pathlib import Path

import pytest

from grape_bench.environment import Environment, differences, name_of, slug
from grape_bench.gpu_reading import GpuReading
from grape_bench.pool import pool
from grape_bench.ranking import compare
from grape_bench.record import Record, TimeReading
from grape_bench.registry import Registry
from grape_bench.store import Store
from grape_bench.view import View

H200 = name_of("NVIDIA H200", None)
OTHERS = [name_of("NVIDIA B200", None), name_of("NVIDIA H200", 500.0), name_of("NVIDIA H200 MIG 1g.18gb", None)]
GPU = GpuReading(mode="graph", flushed_mib=120.0, plain_ms=0.2, launch_bound=True)


def on(device: str, record: Record, environment: Environment, factor: float = 1.0) -> Record:
    """The record as if a GPU had made it, so many times as fast."""
    place = environment.model_copy(
        update={"machine": slug(device), "device": device, "driver": "580.1", "cuda": "13.0", "cpu": "Fabricated CPU"}
    )
    changes: dict[str, object] = {
        "environment": place,
        "run": slug(device),
        "block_run": f"{device} {record.block_run}",
    }
    if isinstance(record.reading, TimeReading):
        samples = tuple(ms / factor for ms in record.reading.samples_ms)
        changes["reading"] = record.reading.model_copy(
            update={"samples_ms": samples, "wall_ms": samples, "clock": "cuda_event", "gpu": GPU}
        )
    return record.model_copy(update=changes)


@pytest.fixture
def two(make_fabricated: Callable, environment: Environment) -> Callable:
    """The records of one suite on an H200 and, three times as fast, on another GPU; and the suite."""

    def made(other: str):
        suite = make_fabricated(encodings=("none", "rope"))
        records = [one for one in suite.records if one.cell.kind == "cost"]
        return (
            suite,
            [on(H200, one, environment) for one in records],
            [on(other, one, environment, 3.0) for one in records],
        )

    return made


@pytest.mark.parametrize("other", OTHERS)
def test_two_gpus_never_share_a_cost_ranking(two: Callable, other: str) -> None:
    suite, first, second = two(other)
    metrics = Registry("metrics")
    both = View.of(suite.suite, suite.cells, [*first, *second], metrics)
    assert [one.environment.device for one in both.machines] == [H200, other]
    for bench, alone in zip(both.benches, (first, second), strict=True):
        (expected,) = View.of(suite.suite, suite.cells, alone, metrics).benches
        assert bench.readings == expected.readings
        for grid, same in zip(bench.grids, expected.grids, strict=True):
            for encoding, length in grid.outcomes:
                assert bench.against(grid, encoding, length) == expected.against(same, encoding, length)


@pytest.mark.parametrize("other", OTHERS)
def test_a_leaderboard_keeps_two_gpus_apart(two: Callable, other: str, tmp_path: Path) -> None:
    _, *sides = two(other)
    for device, records in zip((H200, other), sides, strict=True):
        with Store(tmp_path).writing(slug(device), "fabricated") as writer:
            writer.append(records)
    boards = pool(dict.fromkeys(tmp_path.glob("*/*.jsonl"), "results")).boards
    assert {one.hardware[0] for one in boards} == {H200, other}
    kept: dict[str, set[int]] = {H200: set(), other: set()}
    for board in boards:
        kept[board.hardware[0]] |= board.units
    assert kept[H200]
    assert not kept[H200] & kept[other]


@pytest.mark.parametrize("other", OTHERS)
def test_a_comparison_of_two_gpus_is_refused_by_name(two: Callable, other: str) -> None:
    _, first, second = two(other)
    one, *_ = [record for record in first if record.cell.metric == "forward_ms" and record.reading]
    like, *_ = [record for record in second if record.cell.id == one.cell.id and record.role == one.role]
    with pytest.raises(ValueError, match=rf"device differs: {H200} and {other}"):
        compare([one], [like])


def test_a_gpu_of_a_lowered_power_limit_is_another_device() -> None:
    assert (H200, OTHERS[1]) == ("NVIDIA H200", "NVIDIA H200 at 500 W")
    assert slug(OTHERS[1]) == "nvidia-h200-at-500-w"


@pytest.mark.parametrize(
    ("key", "value"), [("driver", "590.2"), ("cuda", "12.8"), ("tf32", True), ("deterministic", True), ("cpu", "Other")]
)
def test_what_else_forbids_a_comparison(environment: Environment, key: str, value: object) -> None:
    (sentence,) = differences(environment, environment.model_copy(update={key: value}))
    assert sentence.startswith(f"{key} differs: ")
