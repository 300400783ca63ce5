"""What a GPU did while it was timed: how times were taken, its clocks and heat, and rounds that were measured again."""

from collections import Counter
from collections.abc import Iterable, Sequence

from grape_bench.bench import Bench
from grape_bench.gpu_reading import GpuReading, GpuState
from grape_bench.record import TimeReading
from grape_bench.sections.wording import ABSENT, amount_of
from grape_bench.table import Entry, Row, Section, Table
from grape_bench.view import View

_FOOT = (
    "Launch-bound: a call by itself takes much longer than its work on the GPU, so that a model which runs it call by "
    "call waits for the host; the times of this report are those of the work. Clocks, power and heat are NVML's, under "
    "load, before the first pair of rounds and after each. A pair of rounds that the GPU did not hold still for is "
    "measured again."
)


def gpu(view: View) -> Section | None:
    """A row for each metric of each GPU."""
    tables = [table for number, bench in enumerate(view.benches, 1) if (table := _table(bench, f"bench-{number}-gpu"))]
    return Section("gpu", "What the GPU did meanwhile", tuple(tables)) if tables else None


def _table(bench: Bench, anchor: str) -> Table | None:
    rows = []
    for (scope, metric), grids in bench.metrics().items():
        outcomes = (one for grid in grids for one in grid.outcomes.values())
        readings = [record.reading for one in outcomes for record in one.records]
        found = [one.gpu for one in readings if isinstance(one, TimeReading) and one.gpu]
        if found:
            rows.append(_row(f"{metric}, {scope}", found))
    if not rows:
        return None
    columns = ("metric", "timed by", "launch-bound", "SM clock", "power", "temperature", "rounds again")
    return Table(anchor, "How times were taken, and how the GPU held", columns, tuple(rows), prose=True, foot=_FOOT)


def _row(metric: str, readings: Sequence[GpuReading]) -> Row:
    states = list(dict.fromkeys(state for one in readings for state in one.states))
    bound = sum(one.launch_bound for one in readings)
    return (
        Entry(metric),
        _modes(readings),
        Entry(f"{bound} of {len(readings)}", tone="unclear" if bound else "plain"),
        _range((one.sm_mhz for one in states), "MHz", _unwatched(readings)),
        _range((one.power_w for one in states), "W"),
        _range((one.temperature_c for one in states), "°C", _reasons(states)),
        _again(readings),
    )


def _modes(readings: Iterable[GpuReading]) -> Entry:
    counts = Counter("replays of a graph" if one.mode == "graph" else "events" for one in readings)
    refused = Counter(one.uncaptured for one in readings if one.uncaptured)
    reason = f"{refused.total()} could not be captured: {refused.most_common(1)[0][0]}" if refused else ""
    return Entry(", ".join(f"{word}: {count}" for word, count in sorted(counts.items())), reason)


def _range(values: Iterable[float | None], unit: str, note: str = "") -> Entry:
    known = [one for one in values if one is not None]
    if not known:
        return Entry(ABSENT.text, note, "muted")
    low, high = round(min(known)), round(max(known))
    return Entry(f"{low} {unit}" if low == high else f"{low} to {high} {unit}", note)


def _unwatched(readings: Iterable[GpuReading]) -> str:
    return next((one.unwatched for one in readings if one.unwatched), "")


def _reasons(states: Iterable[GpuState]) -> str:
    return ", ".join(dict.fromkeys(reason for one in states for reason in one.reasons))


def _again(readings: Sequence[GpuReading]) -> Entry:
    found = Counter(why for one in readings for why in one.discarded)
    if not found:
        return Entry("none")
    disturbed = sum(bool(one.discarded) for one in readings)
    return Entry(f"in {amount_of(disturbed, 'reading')}", found.most_common(1)[0][0], "unclear")
