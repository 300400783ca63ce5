"""A small repository of twelve commits with steps planted in fabricated records."""

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import grape_bench
from grape_bench.environment import Environment
from grape_bench.record import AccuracyReading, MemoryReading, Record, TimeReading
from grape_bench.store import Store
from grape_bench.suite import expand, load

HOME = Path(grape_bench.__file__).parents[1]
SUITE = "planted-steps"
TEXT = """\
title: Steps planted in fabricated records
baseline: none
encodings: [none, rope, t5]
seeds: [0, 1, 2]
cost:
  - {lengths: [64, 128], heads: [4], metrics: [forward_ms, peak_mib]}
accuracy:
  - {task: registers, train_length: 64, test_lengths: [64, 128]}
"""
# The commit, counted from 0, from which rope is slower, t5 hungrier and none less accurate.
TIME, MEMORY, ERROR = 7, 5, 9


@dataclass(frozen=True)
class Planted:
    """The repository, which is the working directory.

    Args:
        commits: from the oldest; slower, larger, worse: those with the steps in rope's times, t5's memory and none's
            accuracies.
    """

    folder: Path
    commits: tuple[str, ...]
    store: Store
    suite: str = SUITE

    @property
    def slower(self) -> str:
        return self.commits[TIME]

    @property
    def larger(self) -> str:
        return self.commits[MEMORY]

    @property
    def worse(self) -> str:
        return self.commits[ERROR]

    def records(self) -> list[Record]:
        return self.store.records(SUITE)


def git(folder: Path, *words: str, day: int = 1) -> str:
    date = f"2024-03-{day:02d}T12:00:00Z"
    names = {f"GIT_{who}_{what}": f"{who}@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **names, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    done = subprocess.run(["git", *words], cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def make_repository(folder: Path) -> None:
    """Twelve commits of a project that has our configuration, our benchmarks and one suite beside them."""
    benchmarks = folder / "grape_bench" / "asv_benchmarks"
    (benchmarks / "suites").mkdir(parents=True)
    for name in ("__init__.py", "suite.py"):
        shutil.copy(HOME / "grape_bench" / "asv_benchmarks" / name, benchmarks)
    (benchmarks / "suites" / f"{SUITE}.yaml").write_text(TEXT, encoding="utf-8")
    shutil.copy(HOME / "asv.conf.json", folder)
    (folder / ".gitignore").write_text("__pycache__/\n*.lock\n", encoding="utf-8")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    for number in range(12):
        git(folder, "commit", "--quiet", "--allow-empty", "-m", f"commit {number}", day=1 + number)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template")
    make_repository(folder)
    return folder


@pytest.fixture
def planted(
    template: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make_record: Callable[..., Record],
    environment: Environment,
) -> Planted:
    folder = shutil.copytree(template, tmp_path / "planted")
    monkeypatch.chdir(folder)
    commits = tuple(git(folder, "rev-list", "--reverse", "HEAD").split())
    store, suite = Store(Path("results")), load(Path("grape_bench/asv_benchmarks/suites") / f"{SUITE}.yaml")
    with store.writing(environment.machine, SUITE) as writer:
        for number, commit in enumerate(commits):
            shared = {
                "suite": SUITE,
                "run": f"run-{number}",
                "at": f"2024-03-{1 + number:02d}T13:00:00Z",
                "seconds": 2.0,
                "environment": environment.model_copy(update={"commit": commit, "dirty": False}),
            }
            writer.append(
                # One seed trains to the same figures at every commit, but for what `step` does to them.
                step(make_record(cell, **shared, block_run=f"block-{number if cell.kind == 'cost' else 0}"), number)
                for cell in expand(suite)
            )
    return Planted(folder, commits, store)


def step(record: Record, number: int) -> Record:
    """The record as it is from commit `number` on."""
    reading, encoding = record.reading, record.cell.encoding
    match reading:
        case TimeReading() if encoding == "rope" and number >= TIME:
            reading = reading.model_copy(update={"samples_ms": tuple(1.4 * one for one in reading.samples_ms)})
        case MemoryReading() if encoding == "t5" and number >= MEMORY:
            reading = reading.model_copy(update={"peak_mib": 2 * reading.peak_mib})
        case AccuracyReading():
            lost = 100 if encoding == "none" and number >= ERROR else 0
            wobble = (7 * number + 3 * record.cell.seed) % 5 - 2  # of 1000, as another version of a library may bring
            correct = [min(one.correct - lost + wobble, one.total) for one in reading.scores]
            scores = zip(reading.scores, correct, strict=True)
            reading = reading.model_copy(
                update={"scores": tuple(one.model_copy(update={"correct": right}) for one, right in scores)}
            )
    return record.model_copy(update={"reading": reading})
