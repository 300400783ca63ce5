"""Fabricated records, for tests alone: plausible in shape, measured nowhere."""

import hashlib
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pytest

from grape_bench.cell import AccuracyCell, Cell, CostCell
from grape_bench.environment import Environment
from grape_bench.record import AccuracyReading, CurvePoint, MemoryReading, Reading, Record, TimeReading
from grape_bench.score import Score
from grape_bench.suite import Suite

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported: tiny shapes only lose by more

ENVIRONMENT = Environment(
    machine="fabricated-cpu-2-cores",
    device="cpu",
    cpu="Fabricated CPU at 2.0 GHz",
    cores=2,
    memory_gib=8.0,
    torch="2.99.0",
    python="3.11.0",
    system="Linux x86_64",
    threads=1,
    commit="0123456789abcdef0123456789abcdef01234567",
    dirty=True,
)
# Cost over no encoding, accuracy at the training length, and how much of it goes with each doubling.
ENCODINGS = {
    "none": (1.00, 0.334, 0.00),
    "sinusoidal": (1.01, 0.96, 0.58),
    "t5": (1.22, 0.90, 0.52),
    "rope": (1.11, 0.985, 0.24),
    "alibi": (1.08, 0.96, 0.10),
    "rope + clamp": (1.31, 0.992, 0.19),
}
METRIC_MS = {"forward_ms": 1.0, "forward_backward_ms": 2.9, "decode_ms": 0.02, "train_step_ms": 9.0}


@dataclass(frozen=True)
class Fabricated:
    """A suite with its cells and records."""

    suite: Suite
    cells: tuple[Cell, ...]
    records: list[Record] = field(default_factory=list)


@pytest.fixture(scope="session")
def make_record() -> Callable[..., Record]:
    """Make one record: `make_record(cell, status="failed", fault="oom")`."""
    return fabricate_record


@pytest.fixture
def environment() -> Environment:
    return ENVIRONMENT


@pytest.fixture
def fabricated() -> Fabricated:
    """Six encodings, two seeds, four lengths, and one each of skipped, failed, missing and not learned."""
    return fabricate_suite()


@pytest.fixture(scope="session")
def make_fabricated() -> Callable[..., Fabricated]:
    """Make such a suite with other encodings or seeds: `make_fabricated(seeds=range(8))`."""
    return fabricate_suite


def fabricate_record(cell: Cell, **changes: Any) -> Record:
    block_run = str(changes.get("block_run", "block-1"))
    role = str(changes.get("role", "member"))
    status = changes.get("status", "ok")
    values: dict[str, Any] = {
        "id": cell.id,
        "suite": "fabricated",
        "run": "run-1",
        "block_run": block_run,
        "at": "2024-01-01T00:00:00Z",
        "cell": cell,
        "status": status,
        "reading": fabricate_reading(cell, block_run, role) if status == "ok" else None,
        "environment": ENVIRONMENT,
    }
    return Record(**(values | changes))


def fabricate_reading(cell: Cell, block_run: str, role: str = "member") -> Reading:
    own = _random(cell.id, block_run, role)
    if isinstance(cell, AccuracyCell):
        return _accuracy(cell, own)
    factor = ENCODINGS.get(cell.encoding, (1.0, 0, 0))[0]
    if cell.metric == "peak_mib":
        scores = cell.heads * cell.length**2 * 4 / 2**20
        return MemoryReading(peak_mib=scores * (1.0 + 2 * (factor - 1)) + 2.0, resident_mib=None)
    shared = _random(block_run, cell.setting)  # what slows a round slows all of its block
    drift = np.exp(shared.normal(0, 0.04, 40))
    size = cell.heads * cell.head_dim * cell.batch * cell.length * (1 if cell.metric == "decode_ms" else cell.length)
    base = METRIC_MS[cell.metric] * (0.05 + size / 2.0e8) * (0.8 if cell.dtype == "bfloat16" else 1.0)
    samples = base * factor * drift * np.exp(own.normal(0, 0.02, 40))
    slow = 1.02 if cell.scope == "attention" else 1.3
    return TimeReading(
        samples_ms=tuple(samples.tolist()), wall_ms=tuple((samples * slow).tolist()), inner=4, clock="process_time"
    )


def _accuracy(cell: AccuracyCell, own: np.random.Generator) -> AccuracyReading:
    _, top, loss = ENCODINGS.get(cell.encoding, (1.0, 0.9, 0.2))
    blind, chance, headline = (0.25, 0.125, "order") if cell.task == "short_text" else (1 / 3, 0.1, "recall")
    if (cell.task, cell.encoding, cell.seed) == ("short_text", "rope", 1):
        top, loss = 0.52, 0.05  # a plateau: did not learn
    scores = []
    for length in cell.test_lengths:
        level = max(top - loss * abs(math.log2(length / cell.train_length)), blind + 0.01)
        right = int(np.clip(level + own.normal(0, 0.012), 0, 1) * 1000)
        scores.append(Score(length=length, group=headline, correct=right, total=1000, blind=blind, chance=chance))
        scores.append(Score(length=length, group="pairs", correct=right // 2 + 480, total=1000, blind=0.5, chance=0.5))
    steps = range(50, 1001, 50)
    rise = [max(chance, top * (1 - math.exp(-step / 150))) for step in steps]
    # No two seeds go the same way.
    lost = [3 * (1 - right) + cell.seed / 100 for right in rise]
    curve = [CurvePoint(step=s, loss=n, accuracy={headline: r}) for s, n, r in zip(steps, lost, rise, strict=True)]
    return AccuracyReading(
        headline=headline,
        scores=tuple(scores),
        curve=tuple(curve),
        data_sha=hashlib.sha256(f"{cell.task} {cell.seed}".encode()).hexdigest(),
        parameters=106_000,
        lr=cell.training.lr,
        train_s=50.0,
        train_cpu_s=45.0,
    )


def fabricate_suite(encodings: tuple[str, ...] = tuple(ENCODINGS), seeds: tuple[int, ...] = (0, 1)) -> Fabricated:
    suite = Suite.model_construct(
        name="fabricated",
        title="Fabricated suite",
        about="Records made up for tests, so that every kind of figure and outcome is in one report.",
        encodings=encodings,
        baseline="none",
        seeds=seeds,
    )
    cells: tuple[Cell, ...] = (*_cost_cells(encodings), *_accuracy_cells(encodings, seeds))
    return Fabricated(suite, cells, list(_records(cells)))


def _cost_cells(encodings: tuple[str, ...]) -> Iterator[CostCell]:
    metrics = ("forward_ms", "forward_backward_ms", "decode_ms", "peak_mib")
    for metric, dtype, heads, length in product(metrics, ("float32", "bfloat16"), (4, 8), (256, 512, 1024)):
        for encoding in encodings:
            yield CostCell(metric=metric, dtype=dtype, heads=heads, length=length, encoding=encoding)
    for metric, length, encoding in product(("train_step_ms", "peak_mib"), (64, 128), encodings):
        at = {"heads": 4, "head_dim": 16, "batch": 16}
        yield CostCell(metric=metric, scope="model", length=length, encoding=encoding, **at)


def _accuracy_cells(encodings: tuple[str, ...], seeds: tuple[int, ...]) -> Iterator[AccuracyCell]:
    tasks = (("registers", 64, (64, 128, 256, 512)), ("short_text", 48, (48, 96, 192)))
    for (task, train, test), seed, encoding in product(tasks, seeds, encodings):
        yield AccuracyCell(task=task, train_length=train, test_lengths=test, seed=seed, encoding=encoding)


def _records(cells: tuple[Cell, ...]) -> Iterator[Record]:
    for cell in cells:
        match cell:
            case CostCell(encoding="t5", metric="decode_ms", dtype="bfloat16"):
                yield fabricate_record(
                    cell, status="skipped", message="t5 does not decode in bfloat16 here, in this tale"
                )
            case CostCell(encoding="rope + clamp", metric="forward_backward_ms", length=1024):
                yield fabricate_record(cell, status="failed", fault="oom", message="16 GiB asked for, 2 GiB free")
            case CostCell(encoding="alibi", scope="model"):
                continue  # missing
            case AccuracyCell(task="short_text", encoding="alibi", seed=1):
                yield fabricate_record(cell, status="failed", fault="nan", message="the loss was nan at step 120")
            case CostCell(encoding="none") if cell.metric != "peak_mib":
                yield fabricate_record(cell)
                yield fabricate_record(cell, role="control")
            case _:
                yield fabricate_record(cell)


def _random(*names: str) -> np.random.Generator:
    digest = hashlib.sha256(" ".join(names).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8]))
