"""Keeps an executor busy with blocks, and writes down what comes of each; one failure stops one cell."""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from grape_bench import timing
from grape_bench.cell import AccuracyCell, Block
from grape_bench.executors import Died, Event, Executor
from grape_bench.interruption import noted
from grape_bench.ledger import Ledger
from grape_bench.placing import Job, Place, place_next
from grape_bench.progress import Progress
from grape_bench.record import Fault
from grape_bench.schedule import estimate, processes_on
from grape_bench.store import DiskError
from grape_bench.suite import Suite
from grape_bench.suite_limits import minutes
from grape_bench.tuning import choose, missing
from grape_bench.worker import Finished, Note, Protocol, Result

_PATIENCE_S = 0.5  # between two looks at the limits
_LIMIT = "the time limit is reached"
_NO_PLACE = "no machine is left for what remains"
_RETRIES = 2  # of a block whose machine was lost


@dataclass
class _Running:
    job: Job
    block: Block
    place: Place
    started: float
    current: str | None = None  # id of the cell that is being worked on


@dataclass
class Loop:
    """One run of some blocks.

    Args:
        ledger: where all that comes of blocks goes; its records tell which learning rates are chosen.
        places: where blocks may be put.
        deadline: by `timing.seconds()`; what runs then is ended, and counts as not tried.
    """

    suite: Suite
    ledger: Ledger
    executor: Executor
    places: Sequence[Place]
    protocol: Protocol
    progress: Progress
    deadline: float = math.inf
    _queue: deque[Job] = field(default_factory=deque)
    _running: dict[int, _Running] = field(default_factory=dict)
    _put_off: list[Job] = field(default_factory=list)

    def run(self, jobs: Sequence[Job]) -> str:
        """Run all; the reason where it stopped early, else nothing."""
        self._queue.extend(jobs)
        try:
            with noted() as signals:
                while self._queue or self._running:
                    if signals or timing.seconds() >= self.deadline:
                        return signals[0] if signals else _LIMIT
                    self._fill()
                    if not self._running and self._queue:
                        return _NO_PLACE
                    for ticket, event in self.executor.wait(_PATIENCE_S):
                        self._handle(ticket, event)
                    self._end_overdue()
        except KeyboardInterrupt:
            return "interrupted"
        except DiskError as error:
            return str(error)
        return _LIMIT if self._put_off else ""

    @property
    def left(self) -> list[Block]:
        """The blocks that were not done, without the members that were refused."""
        jobs = [*self._put_off, *(one.job for one in self._running.values()), *self._queue]
        rest = map(self._rest, jobs)
        return [one for one in rest if one.cells]

    def _rest(self, job: Job) -> Block:
        """A member that was refused in one process is not tried again in the next, on a machine like that."""
        machine = job.kind and job.kind[0]
        refused = {id for where, id in self.ledger.refused if machine in (None, where)}
        return job.block.only({cell.id for cell in job.block.cells} - refused)

    def _fill(self) -> None:
        while (found := self._next()) is not None:
            job, place = found
            block = self._rest(job)
            if not block.cells:
                self.progress.dropped(job.block)
            elif self._too_long(block):
                self._put_off.append(job)
            else:
                ticket = self.executor.start(block, self._protocol_for(block, place), place)
                self._running[ticket] = _Running(job, block, place, timing.seconds())
                self.progress.started(ticket, job.block)

    def _next(self) -> tuple[Job, Place] | None:
        places = [place for place in self.places if self.executor.alive(place)]
        found = place_next(self._queue, places, [(one.place, one.block) for one in self._running.values()], self._ready)
        if found is None:
            return None
        index, place = found
        job = self._queue[index]
        del self._queue[index]
        return job, place

    def _ready(self, job: Job) -> bool:
        """Whether what its learning rate is chosen by has been tried."""
        cell = job.block.cells[0]
        return not isinstance(cell, AccuracyCell) or not missing(cell, self.ledger.records)

    def _protocol_for(self, block: Block, place: Place) -> Protocol:
        cell, folder = block.cells[0], self.ledger.writers[place.environment.machine].path.parent
        times = processes_on(place.environment, self.protocol.processes)
        protocol = replace(self.protocol, processes=times, checkpoints=str(folder / "checkpoints"))
        if isinstance(cell, AccuracyCell) and cell.tune:
            return replace(protocol, lr=choose(cell, self.ledger.records))
        return protocol

    def _too_long(self, block: Block) -> bool:
        """Whether a block will not end in time. A training may: it goes on from its checkpoint another day."""
        if not block.exclusive or self.deadline == math.inf:
            return False
        expected, _ = estimate([block], self.ledger.records, slots=1)
        return timing.seconds() + expected > self.deadline

    def _handle(self, ticket: int, event: Event) -> None:
        running = self._running[ticket]
        if isinstance(event, Note):
            running.current = event.cell or running.current  # the sentinel is no cell
            self.progress.noted(ticket, event.text)
        elif isinstance(event, Finished):
            self.progress.recorded(self.ledger.append(event.results, event.environment, event.seconds))
            del self._running[ticket]  # not before: what cannot be written is left to do
            self.progress.finished(ticket, event)
        else:
            self._bury(ticket, event)

    def _bury(self, ticket: int, death: Died) -> None:
        """Try a block again whose machine was lost; else blame a member."""
        job = self._running[ticket].job
        if death.lost and job.losses < _RETRIES:
            del self._running[ticket]
            self._queue.appendleft(replace(job, losses=job.losses + 1))
            self.progress.lost(ticket, death.message)
            return
        tries = f" (tried {job.losses + 1} times)" if death.lost else ""
        fault: Fault = "oom" if death.oom else "killed" if death.killed else "error"
        self._blame(ticket, fault, death.message + tries)

    def _end_overdue(self) -> None:
        for ticket, running in list(self._running.items()):
            limit = minutes(self.suite, running.block)
            if timing.seconds() - running.started > limit * 60:
                self.executor.kill(ticket)
                self._blame(ticket, "timeout", f"stopped after {limit:g} minutes")

    def _blame(self, ticket: int, fault: Fault, message: str) -> None:
        """Record the member that was being worked on as failed, and go on with the rest of its block."""
        running = self._running[ticket]
        culprit = next((one for one in running.block.cells if one.id == running.current), running.block.cells[0])
        result = Result(culprit, "failed", fault=fault, message=message)
        took = timing.seconds() - running.started
        records = self.ledger.append([result], running.place.environment, took)
        del self._running[ticket]
        self.progress.recorded(records)
        self.progress.died(ticket, records[0])
        rest = running.block.without(culprit.id)
        if rest.cells:
            self._queue.appendleft(replace(running.job, block=rest, losses=0))
