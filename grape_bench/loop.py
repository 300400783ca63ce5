"""Keeps an executor busy with blocks, and writes down what comes of each; one failure stops one cell."""

import uuid
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from grape_bench import timing
from grape_bench.cell import AccuracyCell, Block
from grape_bench.environment import Environment
from grape_bench.executors import Died, Event, Executor
from grape_bench.progress import Progress
from grape_bench.record import Fault, Record, RunStart
from grape_bench.store import Writer
from grape_bench.suite import Suite
from grape_bench.tuning import choose, missing
from grape_bench.worker import Finished, Note, Protocol, Result

_PATIENCE_S = 0.5  # between two looks at the limits


@dataclass
class _Running:
    block: Block
    started: float
    current: str | None = None  # id of the cell that is being worked on


@dataclass
class Loop:
    """One run of some blocks.

    Args:
        start: the run that records belong to; environment: what a record says where the worker could not.
        slots: trainings that may run side by side.
        records: older ones; those of this run are put behind them, and tuning chooses by all.
        cells: ids of this run's members by status.
    """

    suite: Suite
    start: RunStart
    writer: Writer
    executor: Executor
    protocol: Protocol
    environment: Environment
    progress: Progress
    slots: int
    records: list[Record] = field(default_factory=list)
    cells: dict[str, set[str]] = field(default_factory=lambda: {"ok": set(), "skipped": set(), "failed": set()})
    _queue: deque[Block] = field(default_factory=deque)
    _running: dict[int, _Running] = field(default_factory=dict)

    def run(self, blocks: list[Block]) -> bool:
        """Run all; True where it was interrupted."""
        self._queue.extend(blocks)
        try:
            while self._queue or self._running:
                self._fill()
                for ticket, event in self.executor.wait(_PATIENCE_S):
                    self._handle(ticket, event)
                self._end_overdue()
        except KeyboardInterrupt:
            return True
        return False

    def _fill(self) -> None:
        while (queued := self._next()) is not None:
            # A member that was refused in one process is not tried again in the next.
            block = queued.only({cell.id for cell in queued.cells} - self.cells["skipped"] - self.cells["failed"])
            if not block.cells:
                self.progress.dropped(queued)
                continue
            cell, protocol = block.cells[0], self.protocol
            if isinstance(cell, AccuracyCell) and cell.tune:
                protocol = replace(protocol, lr=choose(cell, self.records))
            ticket = self.executor.start(block, protocol)
            self._running[ticket] = _Running(block, timing.seconds())
            self.progress.started(ticket, queued)

    def _next(self) -> Block | None:
        """Take the first block that may start now; none behind a block that waits for the device."""
        for index, block in enumerate(self._queue):
            if not self._fits(block):
                return None
            cell = block.cells[0]
            if not isinstance(cell, AccuracyCell) or not missing(cell, self.records):
                del self._queue[index]
                return block
        return None

    def _fits(self, block: Block) -> bool:
        alone = not self._running
        if block.exclusive or any(one.block.exclusive for one in self._running.values()):
            return alone
        return len(self._running) < self.slots

    def _handle(self, ticket: int, event: Event) -> None:
        running = self._running[ticket]
        if isinstance(event, Note):
            running.current = event.cell or running.current  # the sentinel is no cell
            self.progress.noted(ticket, event.text)
        elif isinstance(event, Finished):
            del self._running[ticket]
            self._append(event)
            self.progress.finished(ticket, event)
        else:
            fault: Fault = "oom" if event.oom else "killed" if event.killed else "error"
            self._blame(ticket, fault, event)

    def _end_overdue(self) -> None:
        limit = self.suite.block_minutes * 60
        for ticket, running in list(self._running.items()):
            if timing.seconds() - running.started > limit:
                self.executor.kill(ticket)
                self._blame(
                    ticket, "timeout", Died(f"stopped after {self.suite.block_minutes:g} minutes", killed=False)
                )

    def _blame(self, ticket: int, fault: Fault, death: Died) -> None:
        """Record the member that was being worked on as failed, and go on with the rest of its block."""
        running = self._running.pop(ticket)
        culprit = next((one for one in running.block.cells if one.id == running.current), running.block.cells[0])
        result = Result(culprit, "failed", fault=fault, message=death.message)
        record = self._record(result, self.environment, timing.seconds() - running.started, _block_run())
        self._write([record])
        self.progress.died(ticket, record)
        rest = running.block.without(culprit.id)
        if rest.cells:
            self._queue.appendleft(rest)

    def _append(self, finished: Finished) -> None:
        block_run = _block_run()
        self._write([self._record(one, finished.environment, finished.seconds, block_run) for one in finished.results])

    def _record(self, result: Result, environment: Environment, seconds: float, block_run: str) -> Record:
        return Record(
            id=result.cell.id,
            suite=self.suite.name,
            run=self.start.run,
            block_run=block_run,
            at=timing.stamp(),
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

    def _write(self, records: Sequence[Record]) -> None:
        self.writer.append(records)
        self.records += records
        self.progress.recorded(records)
        for record in records:
            self.cells[record.status].add(record.cell.id)


def _block_run() -> str:
    return uuid.uuid4().hex[:12]
