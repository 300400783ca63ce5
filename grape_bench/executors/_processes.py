"""Fresh processes of this machine, each with one block and, where there are GPUs, one of them."""

import faulthandler
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import torch

from grape_bench.cell import Block
from grape_bench.environment import Environment, observe, resolve
from grape_bench.executors import Died, Event
from grape_bench.interruption import deaf
from grape_bench.worker import Finished, Protocol, measure

CPU = "cpu"
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_LAST_WORDS = 400  # characters of a dead worker's stderr that are kept
_FAREWELL_S = 10.0  # in which a worker that has closed its pipe must end
Devices = Sequence[tuple[str, Environment]]


@dataclass
class _Worker:
    process: ForkServerProcess
    pipe: Connection
    log: Path
    oom_kills: int
    finished: bool = False


class Processes:
    """Forks workers from a server that has imported torch and computed nothing: each is fresh, and starts at once."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("forkserver")
        # The first step of an optimizer imports torch._dynamo, for more than a second: once in the server will do.
        self._context.set_forkserver_preload(["grape_bench.worker", "torch._dynamo"])
        self._workers: dict[int, _Worker] = {}
        self._tickets = 0
        self._folder = tempfile.TemporaryDirectory(prefix="grape-bench-")
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):  # read when torch is imported, in the server
            os.environ.setdefault(name, "1")
        # A terminal and a scheduler signal all processes at once. The runner alone ends then, and ends the others: it
        # must neither take their death for a fault of a cell nor ask a dead server for a worker.
        resource_tracker.ensure_running()  # the server wants one, whose start would let signals through again
        with deaf():
            forkserver.ensure_running()

    def devices(self, protocol: Protocol) -> Devices:
        """The devices here with their environments, each by the word that `start` takes for it."""
        here, there = self._context.Pipe(duplex=False)
        visible = os.environ.get(_VISIBLE)  # the server may be older than what stands there now
        process = self._context.Process(target=_tell_devices, args=(there, protocol, visible), daemon=True)
        process.start()
        there.close()
        with here:
            try:
                answer: Devices | RuntimeError = here.recv()
            except EOFError:
                answer = RuntimeError("the worker process died while it looked at the machine")
        process.join()
        if isinstance(answer, RuntimeError):
            raise answer
        return answer

    def start(self, block: Block, protocol: Protocol, device: str) -> int:
        """Begin a block in a process that sees this one device, and return a ticket for it."""
        self._tickets += 1
        here, there = self._context.Pipe(duplex=False)
        log = Path(self._folder.name) / f"{self._tickets}.log"
        process = self._context.Process(target=_serve, args=(there, block, protocol, device, str(log)), daemon=True)
        process.start()
        there.close()
        self._workers[self._tickets] = _Worker(process, here, log, _oom_kills())
        return self._tickets

    def wait(self, seconds: float) -> list[tuple[int, Event]]:
        """What workers told, after at most so many seconds."""
        tickets = {worker.pipe: ticket for ticket, worker in self._workers.items()}
        events: list[tuple[int, Event]] = []
        for pipe in wait(list(tickets), timeout=seconds):
            assert isinstance(pipe, Connection)
            ticket = tickets[pipe]
            worker = self._workers[ticket]
            try:
                event = pipe.recv()
                worker.finished = isinstance(event, Finished)
                events.append((ticket, event))
            except (EOFError, OSError):
                del self._workers[ticket]
                pipe.close()
                _end(worker.process)
                if not worker.finished:  # how it ends after that is nobody's business
                    events.append((ticket, _post_mortem(worker)))
        return events

    def kill(self, ticket: int) -> None:
        """End a worker at once."""
        worker = self._workers.pop(ticket)
        worker.process.kill()
        worker.process.join()
        worker.pipe.close()

    def close(self) -> None:
        """End all workers."""
        for ticket in list(self._workers):
            self.kill(ticket)
        self._folder.cleanup()


def _serve(pipe: Connection, block: Block, protocol: Protocol, device: str, log: str) -> None:
    _isolate(log)
    if device != CPU:
        os.environ[_VISIBLE] = device  # in time: torch is imported, and CUDA is not begun
    pipe.send(measure(block, protocol, pipe.send))
    pipe.close()


def _tell_devices(pipe: Connection, protocol: Protocol, visible: str | None) -> None:
    if visible is not None:
        os.environ[_VISIBLE] = visible
    try:
        pipe.send(_devices(protocol))
    except RuntimeError as error:
        pipe.send(error)


def _devices(protocol: Protocol) -> Devices:
    if resolve(protocol.device) == CPU:
        return [(CPU, observe(CPU, protocol.threads))]
    count, visible = torch.cuda.device_count(), os.environ.get(_VISIBLE)
    names = visible.split(",")[:count] if visible else [str(index) for index in range(count)]
    found = []
    for index, name in enumerate(names):
        torch.cuda.set_device(index)
        found.append((name.strip(), observe(protocol.device, protocol.threads)))
    return found


def _isolate(log: str) -> None:
    """Keep a worker's words out of the terminal, and let it end with its runner."""
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(target, 1)
    os.dup2(target, 2)
    faulthandler.enable(sys.stderr)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _end(process: ForkServerProcess) -> None:
    """Wait for the end of a process that says no more; a thread that a plug-in left behind may keep it from ending."""
    process.join(_FAREWELL_S)
    if process.is_alive():
        process.kill()
        process.join()


def _post_mortem(worker: _Worker) -> Died:
    code = worker.process.exitcode or 0
    words = worker.log.read_text(errors="replace").strip() if worker.log.exists() else ""
    # faulthandler's dump names the innermost frame first; a traceback ends with its reason.
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    said = next((line for line in lines if line.startswith("Fatal")), lines[-1] if lines else "")[:_LAST_WORDS]
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return Died(
        f"the process ended by {how}" + (f": {said}" if said else ""),
        killed=code == -signal.SIGKILL,
        oom=_oom_kills() > worker.oom_kills,
    )


def _oom_kills() -> int:
    try:
        rows = dict(line.split() for line in Path("/proc/vmstat").read_text(encoding="ascii").splitlines())
        return int(rows.get("oom_kill", 0))
    except (OSError, ValueError):
        return 0
