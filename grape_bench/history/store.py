"""asv's Python API, all of it that we use: its list of benchmarks, its results, its pages.

asv promises no stability of it, so it is touched in this module alone, and its version is held below 0.7.
"""

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from grape_bench.environment import Environment
from grape_bench.errors import UserError
from grape_bench.history.commits import CONFIGURATION

FAILED, ABSENT = None, float("nan")  # asv's words for a failed cell, and for one that was skipped or never run
_DISCOVER = "import sys; from asv_runner.discovery import list_benchmarks; list_benchmarks(sys.argv[1], sys.stdout)"


@dataclass(frozen=True)
class Cells:
    """All cells of one benchmark.

    Args:
        figures: in asv's order: a number, FAILED, ABSENT, or samples as a `track_` function gives them.
        at: when the newest was measured, ISO 8601; seconds: how long all took.
    """

    figures: tuple[Any, ...]
    at: str
    seconds: float


class AsvStore:
    """asv's results for the checkout in the working directory.

    Raises:
        UserError: asv is not installed.
    """

    def __init__(self) -> None:
        try:
            from asv.config import Config
            from asv.repo import get_repo
        except ImportError:
            raise UserError("asv is not installed; pip install 'grape-bench[history]' brings it") from None
        self._conf = Config.load(str(CONFIGURATION))
        self._repo = get_repo(self._conf)
        self.pages = Path(self._conf.html_dir)

    def discover(self) -> dict[str, dict[str, Any]]:
        """Write asv's list of benchmarks as `asv run` would, and return its entries by name."""
        from asv.benchmarks import Benchmarks

        # A process of its own: the benchmarks are imported under a name that may belong to another checkout here.
        folder = os.path.abspath(self._conf.benchmark_dir)
        done = subprocess.run([sys.executable, "-c", _DISCOVER, folder], capture_output=True, text=True, check=False)
        if done.returncode:
            raise UserError(f"asv finds no benchmarks in {self._conf.benchmark_dir}: {done.stderr.strip()[-300:]}")
        entries = {one["name"]: one for one in json.loads(done.stdout)}
        Benchmarks(self._conf, list(entries.values())).save()
        return entries

    def write(
        self,
        environment: Environment,
        commit: str,
        entries: Mapping[str, Mapping[str, Any]],
        cells: Mapping[str, Cells],
    ) -> None:
        """Add the cells of some benchmarks to the results of a commit on a machine.

        Args:
            entries: as `discover` gives them; cells: by a benchmark's name.

        Raises:
            UserError: a benchmark has another number of cells than its entry.
        """
        from asv.results import Results

        machine = self._machine(environment)
        python = ".".join(environment.python.split(".")[:2])
        own = {"python": python, "torch": environment.torch, **({"cuda": environment.cuda} if environment.cuda else {})}
        results = Results(
            {**machine, **own},
            {"torch": environment.torch},
            commit,
            self._repo.get_date(commit),
            python,
            f"grape-bench-py{python}-torch{environment.torch}-threads{environment.threads}",
            {},
        )
        results.load_data(self._conf.results_dir)
        for name, some in cells.items():
            _add(results, entries[name], some)
        results.save(self._conf.results_dir)

    def publish(self) -> None:
        """Write asv's pages, which empties their folder first.

        Raises:
            UserError: asv has nothing to publish.
        """
        from asv.commands.publish import Publish
        from asv.util import UserError as AsvError

        try:
            with redirect_stdout(io.StringIO()):
                Publish.run(self._conf, pull=False)
        except AsvError as error:
            raise UserError(f"asv publish: {error}") from None

    def _machine(self, environment: Environment) -> dict[str, str]:
        from asv.machine import Machine

        gpu = {} if environment.device == "cpu" else {"gpu": environment.device}
        machine = Machine()
        machine.__dict__.update(
            machine=environment.machine,
            os=environment.system.partition(" ")[0],
            arch=environment.system.rpartition(" ")[2],
            cpu=environment.cpu,
            num_cpu=str(environment.cores),
            ram=str(environment.memory_gib),
            **gpu,
        )
        machine.save(self._conf.results_dir)
        return dict(machine.__dict__)


def _add(results: Any, entry: Mapping[str, Any], cells: Cells) -> None:
    from asv.runner import BenchmarkResult

    size = 1
    for values in entry["params"]:
        size *= len(values)
    if size != len(cells.figures):  # asv would fill a short list with failures
        raise UserError(f"{entry['name']} has {size} cells in the working tree, and {len(cells.figures)} were given")
    many = [isinstance(one, dict) for one in cells.figures]
    result = BenchmarkResult(
        result=[True if sampled else one for one, sampled in zip(cells.figures, many, strict=True)],
        samples=[one["samples"] if sampled else None for one, sampled in zip(cells.figures, many, strict=True)],
        number=[one["number"] if sampled else None for one, sampled in zip(cells.figures, many, strict=True)],
        errcode=0,
        stderr="",
        profile=None,
    )
    results.add_result(
        entry, result, started_at=datetime.fromisoformat(cells.at), duration=cells.seconds, record_samples=True
    )
