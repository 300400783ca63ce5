"""Real runs of the command line in processes of their own, to be disturbed."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

import grape_bench
from grape_bench.record import Record, RunStart
from grape_bench.store import Store

PLUGINS = Path(__file__).parent / "plugins.py"
COST = """
cost:
  - {lengths: [16], heads: [2], head_dim: [8], metrics: [forward_ms], minutes: %(minutes)s, encodings: [%(cost)s]}
"""
TRAINING = """
accuracy:
  - task: registers(registers=2, writes=2, pairs=2)
    train_length: 16
    test_lengths: [16, 24]
    model: {width: 16, layers: 2, heads: 2}
    training: {steps: %(steps)s, batch: 4, warmup: 2, test_examples: 10}
    encodings: [%(trained)s]
"""


@dataclass
class Bench:
    """One suite with its results, in a folder of its own."""

    folder: Path
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def results(self) -> Path:
        return self.folder / "results"

    def suite(self, cost: str = "", trained: str = "", *, seeds: int = 1, steps: int = 6, minutes: float = 1.0) -> None:
        names = dict.fromkeys(one.strip() for one in f"none, {cost}, {trained}".split(",") if one.strip())
        head = f"title: Tiny\nbaseline: none\nprocesses: 1\nencodings: [{', '.join(names)}]\n"
        head += f"seeds: {list(range(seeds))}\n"
        body = (COST if cost else "") + (TRAINING if trained else "")
        values = {"cost": cost, "trained": trained, "steps": steps, "minutes": minutes}
        (self.folder / "tiny.yaml").write_text(head + body % values, encoding="utf-8")

    def start(
        self, *words: str, plugins: str = "", python: tuple[str, ...] = ("-m", "grape_bench"), **more: Any
    ) -> Any:
        """Begin a run in a session of its own, so that all its processes are known."""
        extra = [f"--encoding={PLUGINS}:{name}" for name in plugins.split()]
        command = [sys.executable, *python, "tiny.yaml", "--device=cpu", "--reports=reports", *extra, *words]
        environment = {**os.environ, "PYTHONPATH": str(Path(grape_bench.__file__).parents[1])}
        # To a file: the end of a pipe would be held by whatever outlives the runner.
        said = (self.folder / "said.txt").open("w")
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=environment,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
            **more,
        )
        self.processes.append(process)
        return process

    def run(self, *words: str, **more: Any) -> tuple[int, str]:
        """A whole run: its exit code, and what it said."""
        code = self.start(*words, **more).wait(timeout=300)
        return code, self.said()

    def said(self) -> str:
        text = (self.folder / "said.txt").read_text()
        assert "Traceback" not in text, text
        return text

    def report(self) -> str:
        return (self.folder / "reports" / "tiny.md").read_text()

    def path(self) -> Path:
        (path,) = self.results.glob("*/tiny.jsonl")
        return path

    def lines(self) -> list[Record | RunStart]:
        return list(Store(self.results).lines("tiny"))

    def members(self) -> list[Record]:
        return [one for one in self.lines() if isinstance(one, Record) and one.role == "member"]

    def workers(self) -> list[psutil.Process]:
        """Processes that measure: the children of the fork server."""
        found = []
        for process in self.alive():
            parent = process.parent()
            if parent is not None and parent.ppid() == self.processes[-1].pid:
                found.append(process)
        return found

    def alive(self) -> list[psutil.Process]:
        """All processes of the last run."""
        return [one for one in psutil.process_iter() if _session(one.pid) == self.processes[-1].pid]


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return -1


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    for process in made.processes:
        process.kill()
        process.wait()


@pytest.fixture
def wait_for() -> Callable[..., Any]:
    return _wait_for


def _wait_for(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if found := condition():
                return found
        except (psutil.Error, ValueError):
            continue
        time.sleep(0.005)
    raise AssertionError("it did not happen in time")
