"""The end of a worker, as its runner sees it."""

import signal
from dataclasses import dataclass, field
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import pytest

from grape_bench.environment import Environment
from grape_bench.executors import Died
from grape_bench.executors._processes import Processes, _Worker
from grape_bench.worker import Finished


@dataclass
class Process:
    """A process that has ended, or that lingers until it is killed.

    Args:
        calls: what was done to it.
    """

    exitcode: int
    lingers: bool = False
    calls: list[str] = field(default_factory=list)

    def join(self, seconds: float | None = None) -> None:
        self.calls.append("join")
        assert seconds is not None or not self.lingers, "a runner would wait for ever"

    def is_alive(self) -> bool:
        return self.lingers

    def kill(self) -> None:
        self.calls.append("kill")
        self.lingers, self.exitcode = False, -signal.SIGKILL


def ended(folder: Path, process: Process, sent: list[Any]) -> list[list[Any]]:
    """What is told of a worker that sent this and ended so, look by look."""
    processes = Processes()
    here, there = Pipe(duplex=False)
    processes._workers[1] = _Worker(process, here, folder / "none.log", 0)  # type: ignore[arg-type]
    for one in sent:
        there.send(one)
    there.close()
    looks = [[event for _, event in processes.wait(0.1)] for _ in range(len(sent) + 2)]
    processes.close()
    return looks


def test_how_a_worker_ends_after_its_block_is_nobodys_business(tmp_path: Path, environment: Environment) -> None:
    """A library may crash when its process closes; the block is measured nevertheless."""
    finished = Finished((), environment, 1.0)
    assert ended(tmp_path, Process(-signal.SIGSEGV), [finished]) == [[finished], [], []]


@pytest.mark.parametrize("exitcode", [0, 3, -signal.SIGKILL])
def test_a_worker_that_leaves_without_a_word_has_died(tmp_path: Path, exitcode: int) -> None:
    """Also with exit code 0, as after `sys.exit()`; else the runner would wait for it until its limit."""
    (event,), *later = ended(tmp_path, Process(exitcode), [])
    assert isinstance(event, Died)
    assert event.killed is (exitcode == -signal.SIGKILL)
    assert later == [[]]


def test_a_worker_that_does_not_end_after_its_block_is_ended(tmp_path: Path, environment: Environment) -> None:
    """A thread that an encoding of somebody else left behind would hold it, and with it the whole run."""
    finished, process = Finished((), environment, 1.0), Process(0, lingers=True)
    assert ended(tmp_path, process, [finished]) == [[finished], [], []]
    assert process.calls == ["join", "kill", "join"]
