"""What the cost records of one machine say: grids of outcomes, medians and ratios to the baseline."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

from grape_bench.cell import CostCell, Scope
from grape_bench.environment import Environment
from grape_bench.outcome import Machine, Outcome, outcomes
from grape_bench.ranking import Comparison, compare
from grape_bench.record import MemoryReading, Record, TimeReading

CONTENDED = 1.1  # wall time over CPU time; above it other work shared the core


class Setting(NamedTuple):
    """All of a cost cell but its encoding, metric and length.

    Args:
        backend: empty where several are set beside each other; layers: 0 where there is no model.
    """

    dtype: str
    backend: str
    heads: int
    kv_heads: int
    head_dim: int
    batch: int
    causal: bool
    layers: int

    @classmethod
    def of(cls, cell: CostCell) -> Self:
        return cls(
            cell.dtype,
            cell.backend,
            cell.heads,
            cell.kv_heads or cell.heads,
            cell.head_dim,
            cell.batch,
            cell.causal,
            cell.layers if cell.scope == "model" else 0,
        )

    def __str__(self) -> str:
        keys = f" ({self.kv_heads} of keys)" if self.kv_heads != self.heads else ""
        parts = [self.dtype, f"{self.heads} heads{keys} of {self.head_dim}", f"batch {self.batch}"]
        parts += [self.backend] if self.backend else []
        parts += ["causal"] if self.causal else []
        parts += [f"{self.layers} layers"] if self.layers else []
        return ", ".join(parts)

    @property
    def size(self) -> int:
        return self.heads * self.head_dim * self.batch


@dataclass(frozen=True)
class Grid:
    """The outcomes of one metric at one setting, by encoding and length (tokens)."""

    scope: Scope
    metric: str
    setting: Setting
    outcomes: Mapping[tuple[str, int], Outcome]

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(sorted({length for _, length in self.outcomes}))

    @property
    def encodings(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(encoding for encoding, _ in self.outcomes))


@dataclass(frozen=True)
class Bench:
    """The cost side of a suite on one machine.

    Args:
        machine: None where nothing was measured yet.
        readings: all ok records, members and controls, by cell, role and block_run.
    """

    machine: Machine | None
    baseline: str | None
    grids: tuple[Grid, ...]
    readings: Mapping[tuple[str, str], tuple[Record, ...]]

    @classmethod
    def of(cls, cells: Iterable[CostCell], machine: Machine | None, baseline: str | None) -> Self:
        records = machine.records if machine else ()
        found: defaultdict[tuple[str, str], list[Record]] = defaultdict(list)
        for record in records:
            if record.status == "ok" and record.reading is not None and record.cell.kind == "cost":
                found[record.cell.id, record.role].append(record)
        grids: defaultdict[tuple[Scope, str, Setting], dict[tuple[str, int], Outcome]] = defaultdict(dict)
        for outcome in outcomes(cells, records).values():
            cell = outcome.cell
            assert isinstance(cell, CostCell)
            grids[cell.scope, cell.metric, Setting.of(cell)][cell.encoding, cell.length] = outcome
        ordered = tuple(Grid(*key, outcomes=inside) for key, inside in grids.items())
        return cls(machine, baseline, ordered, {key: tuple(each) for key, each in found.items()})

    @property
    def environment(self) -> Environment | None:
        return self.machine.environment if self.machine else None

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        return tuple(outcome for grid in self.grids for outcome in grid.outcomes.values())

    def metrics(self) -> dict[tuple[Scope, str], tuple[Grid, ...]]:
        """The grids of each scope and metric, in the order of the suite."""
        found: defaultdict[tuple[Scope, str], list[Grid]] = defaultdict(list)
        for grid in self.grids:
            found[grid.scope, grid.metric].append(grid)
        return {key: tuple(grids) for key, grids in found.items()}

    def against(
        self, grid: Grid, encoding: str, length: int, reference: str | None = None, *, family: int | None = None
    ) -> Comparison | None:
        """The ratio to the baseline (or another reference), None where the two were not measured side by side.

        Args:
            family: ratios that are read together; None for all of this length.
        """
        member = grid.outcomes.get((encoding, length))
        base = grid.outcomes.get((reference or self.baseline or "", length))
        if not member or not base or member.standing != "ok":
            return None
        return self.between(member, base, family=family or _ratios(grid, length))

    def between(self, member: Outcome, base: Outcome, *, family: int = 1) -> Comparison | None:
        """The ratio of one cell to another, whatever they differ in; None where they were not measured side by side."""
        return self._beside(member.records, self.readings.get((base.cell.id, "member"), ()), family)

    def control(self, grid: Grid, length: int) -> Comparison | None:
        """The ratio of the baseline to itself, measured as if it were another member: what this machine can resolve."""
        base = grid.outcomes.get((self.baseline or "", length))
        if not base or base.standing != "ok":
            return None
        shared = {one.block_run for one in base.records}
        twins = self.readings.get((base.cell.id, "control"), ())
        return self._beside([one for one in twins if one.block_run in shared], base.records, _ratios(grid, length))

    def _beside(self, member: Iterable[Record], base: Iterable[Record], family: int) -> Comparison | None:
        # Times pair within a process. Memory is measured in a process of its own and does not scatter.
        left = list(member)
        runs = {one.block_run for one in left}
        right = [one for one in base if one.block_run in runs or isinstance(one.reading, MemoryReading)]
        runs = {one.block_run for one in right}
        left = [one for one in left if one.block_run in runs or isinstance(one.reading, MemoryReading)]
        return compare(left, right, family=family) if left and right else None


def lengths_of(grids: Iterable[Grid]) -> tuple[int, ...]:
    """The lengths (tokens) that any of them has."""
    return tuple(sorted({length for grid in grids for length in grid.lengths}))


def _ratios(grid: Grid, length: int) -> int:
    """Ratios that a reader sees side by side at one length: each encoding, and the control in the baseline's place."""
    return sum(at == length for _, at in grid.outcomes)


def value(outcome: Outcome | None) -> float | None:
    """The absolute figure of an ok cell: the median of all samples in ms, or the peak in MiB."""
    if outcome is None or outcome.standing != "ok":
        return None
    match outcome.last and outcome.last.reading:
        case TimeReading():
            readings = [one.reading for one in outcome.records]
            return statistics.median(ms for one in readings if isinstance(one, TimeReading) for ms in one.samples_ms)
        case MemoryReading(peak_mib=peak):
            return peak
    return None


def contention(records: Iterable[Record]) -> float | None:
    """Median wall time over CPU time, None where the clock is another one or nothing was timed."""
    ratios = [
        wall / cpu
        for one in records
        if isinstance(one.reading, TimeReading) and one.reading.clock == "process_time"
        for wall, cpu in zip(one.reading.wall_ms, one.reading.samples_ms, strict=False)  # a stranger's need not match
        if cpu
    ]
    return statistics.median(ratios) if ratios else None
