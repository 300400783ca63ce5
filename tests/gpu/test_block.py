"""A whole block on a simulated GPU: real cells, whose operations take the simulated time that they are given."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest
import torch
from simulated import COOL, SimulatedGpu

from grape_bench.attempt import Result
from grape_bench.cell import Block, CostCell
from grape_bench.gpu.timer import GpuTimer
from grape_bench.gpu_reading import GpuState
from grape_bench.record import Record, TimeReading
from grape_bench.time_block import TimeBlock
from grape_bench.timing import Effort, Operation

HOT = COOL.model_copy(update={"reasons": ("software thermal slowdown",), "temperature_c": 91})
EFFORT = Effort(pairs=2, processes=3, warmup=3, sample_ms=1.0, agreement=0.01)
BLOCK = Block(
    tuple(CostCell(metric="forward_ms", encoding=one, length=24, heads=2, head_dim=8) for one in ("none", "rope")), 0
)


@dataclass
class Simulated(GpuTimer):
    """Gives operation after operation a time on the device; a bound of memory stops the second one.

    Args:
        ms: of each operation, the control's and the sentinel's with them.
        calls: after so many the second operation finds no memory.
    """

    stream: SimulatedGpu = field(default_factory=SimulatedGpu)
    look: Callable[[], GpuState] | str = lambda: COOL
    kernels: Callable[[Sequence[Operation]], Sequence[str]] = lambda some: ["attended by flash_fwd_kernel"] * len(some)
    ms: tuple[float, ...] = (0.02, 0.03, 0.02, 0.3)
    calls: float = float("inf")

    def __post_init__(self) -> None:
        self.now, self.pause = self.stream.now, self.stream.pause

    def time(
        self, operations: Sequence[Operation], effort: Effort, *, seed: int, before: Callable[[int], None]
    ) -> list[TimeReading]:
        costed = [self._costed(*each) for each in zip(operations, self.ms[: len(operations)], strict=True)]
        return super().time(costed, effort, seed=seed, before=before)

    def _costed(self, operation: Operation, ms: float) -> Operation:
        spend = self.stream.operation(ms)

        def run() -> None:
            self.calls -= ms == self.ms[1]
            if self.calls < 0:
                self.calls = float("inf")
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB")
            operation()
            spend()

        return run


def measure(timer: GpuTimer) -> list[Result]:
    return TimeBlock(BLOCK, "cpu", 1, timer, lambda note: None).measure(EFFORT)


def test_a_block_of_short_kernels_is_replayed_and_says_how(make_record: Callable[..., Record]) -> None:
    results = measure(Simulated())
    assert [(one.cell.encoding, one.role, one.status) for one in results] == [
        ("none", "member", "ok"),
        ("rope", "member", "ok"),
        ("none", "control", "ok"),
    ]
    for result, ms in zip(results, (0.02, 0.03, 0.02), strict=True):
        assert result.reading.samples_ms == pytest.approx([ms] * 4)
        assert result.reading.sentinel_ms == pytest.approx([0.3] * 4)
        assert (result.reading.gpu.mode, result.reading.gpu.states) == ("graph", (COOL,) * 3)
        assert result.notes == ("attended by flash_fwd_kernel",)
        record = make_record(result.cell, reading=result.reading)
        assert Record.model_validate_json(record.model_dump_json(by_alias=True)) == record


def test_throttling_ends_as_failed_throttled_with_a_sentence() -> None:
    results = measure(Simulated(look=lambda: HOT))
    assert [(one.status, one.fault, one.reading) for one in results] == [("failed", "throttled", None)] * 2
    assert "did not hold still" in results[0].message
    assert "software thermal slowdown at 91 °C" in results[0].message


def test_a_gpu_that_cools_down_gives_all_samples_and_shows_how_often_it_was_hot() -> None:
    states = iter([COOL, HOT, HOT, COOL])
    one, *_ = measure(Simulated(look=lambda: next(states, COOL)))
    assert one.status == "ok"
    assert len(one.reading.samples_ms) == 2 * EFFORT.pairs
    assert len(one.reading.gpu.discarded) == 2


@pytest.mark.parametrize("calls", [0, 5, 12, 22])
def test_who_runs_out_of_memory_is_blamed_at_whatever_call_and_the_rest_goes_on(calls: int) -> None:
    """At the first call, while it is made ready, in the warm-up, in a round."""
    results = measure(Simulated(ms=(0.2, 0.3, 0.2, 0.4), calls=calls))
    blamed = [one for one in results if one.status != "ok"]
    assert [(one.cell.encoding, one.fault) for one in blamed] == [("rope", "oom")]
    assert "Tried to allocate 9 GiB" in blamed[0].message
    assert [(one.cell.encoding, one.role) for one in results if one.status == "ok"] == [
        ("none", "member"),
        ("none", "control"),
    ]
