"""How much of what the GPU could do the attention does, where its peak is known."""

from collections.abc import Iterator

from grape_bench.bench import Bench, Grid, lengths_of, value
from grape_bench.cell import CostCell
from grape_bench.flops import PEAK_TFLOPS, peak_share
from grape_bench.outcome import Outcome
from grape_bench.sections.wording import ABSENT, standing
from grape_bench.table import Entry, Prose, Row, Section, Table
from grape_bench.view import View

_METRICS = ("forward_ms", "forward_backward_ms")  # decoding reads memory, and computes next to nothing
_READING = (
    "The products of attention over the median time, as a share of the device's dense bfloat16 peak by its data sheet. "
    "A decoder counts the pairs that its mask leaves, and a backward pass the scores that it makes once more. What the "
    "encoding computes is not counted, so the share falls with what it costs."
)


def peak(view: View) -> Section | None:
    """None where nothing in half precision was measured on a device whose peak is known."""
    tables = [table for number, bench in enumerate(view.benches, 1) for table in _tables(view, bench, number)]
    return Section("peak", "Share of the peak", (Prose(_READING), *tables)) if tables else None


def _tables(view: View, bench: Bench, number: int) -> Iterator[Table]:
    device = bench.environment.device if bench.environment else ""
    for (_, metric), grids in bench.metrics().items():
        shown = [grid for grid in grids if any(_share(one, device) is not None for one in grid.outcomes.values())]
        if metric not in _METRICS or not shown:
            continue
        lengths = lengths_of(shown)
        rows = tuple(row for grid in shown for row in _rows(grid, lengths, device))
        caption = f"{view.name(metric).capitalize()}: share of {PEAK_TFLOPS[device]:g} TFLOP/s by length in tokens"
        anchor = f"bench-{number}-{metric.replace('_', '-')}-peak"
        yield Table(anchor, caption, ("encoding", *map(str, lengths)), rows)


def _rows(grid: Grid, lengths: tuple[int, ...], device: str) -> Iterator[Row]:
    yield (Entry(str(grid.setting)),)
    for encoding in grid.encodings:
        yield (Entry(encoding), *(_entry(grid.outcomes.get((encoding, length)), device) for length in lengths))


def _entry(outcome: Outcome | None, device: str) -> Entry:
    if outcome is None:
        return ABSENT
    share = _share(outcome, device)
    return standing([outcome]) if share is None else Entry(f"{100 * share:.1f} %")


def _share(outcome: Outcome, device: str) -> float | None:
    milliseconds = value(outcome)
    assert isinstance(outcome.cell, CostCell)
    return None if milliseconds is None else peak_share(outcome.cell, milliseconds, device)
