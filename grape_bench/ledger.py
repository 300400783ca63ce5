"""What comes of blocks, written down: each record to the file of the machine that measured it."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from grape_bench import timing
from grape_bench.environment import Environment
from grape_bench.record import Record, RunStart, Status
from grape_bench.store import Writer
from grape_bench.worker import Result


@dataclass
class Ledger:
    """The records of one run.

    Args:
        start: the run that they belong to; writers: by machine.
        records: older ones; those of this run are put behind them.
        cells: ids of this run's members by status; refused: machines and ids of those that were skipped or failed.
    """

    start: RunStart
    writers: Mapping[str, Writer]
    records: list[Record] = field(default_factory=list)
    cells: dict[Status, set[str]] = field(default_factory=lambda: {"ok": set(), "skipped": set(), "failed": set()})
    refused: set[tuple[str, str]] = field(default_factory=set)

    def append(self, results: Sequence[Result], environment: Environment, seconds: float) -> list[Record]:
        """Write down what came of one block, and return it.

        Args:
            environment: where it was measured; seconds: what the whole block took.
        """
        block_run = uuid.uuid4().hex[:12]
        made = [self._record(one, environment, seconds, block_run) for one in results]
        self.writers[environment.machine].append(made)
        self.records += made
        for record in made:
            self.cells[record.status].add(record.cell.id)
            if record.status != "ok":
                self.refused.add((environment.machine, record.cell.id))
        return made

    def _record(self, result: Result, environment: Environment, seconds: float, block_run: str) -> Record:
        return Record(
            id=result.cell.id,
            suite=self.start.suite,
            run=self.start.run,
            block_run=block_run,
            at=max(timing.stamp(), self.start.at),  # readers go by it, and clocks are set back
            cell=result.cell,
            role=result.role,
            status=result.status,
            fault=result.fault,
            message=result.message,
            reading=result.reading,
            notes=result.notes,
            seconds=seconds,
            environment=environment,
        )
