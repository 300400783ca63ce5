"""Work and a reference, turn by turn: the harness is held to a ratio, which a busy machine leaves as it is."""

import gc
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import ceil

import pytest
import torch

from grape_bench.environment import slug

ROUNDS = 20
_LEAST_S = 0.02  # of one round
_SHARE = 0.2  # of a long round's time, for the reference before it and again after it


@pytest.fixture
def words() -> Callable[[], object]:
    """A reference of the interpreter: a table written as JSON, read again and sorted, some 10 ms."""
    rows = [{"name": f"row {number}", "values": [number * 0.1, number % 7, None]} for number in range(4000)]
    return lambda: sorted(json.loads(json.dumps(rows)), key=lambda row: (row["values"][1], row["name"]))


@pytest.fixture
def numbers() -> Callable[[], object]:
    """A reference of torch: plain attention in small steps, as small as what it stands beside, some 10 ms."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 4, 64, 16, generator=generator) for _ in range(3))

    def run() -> object:
        for _ in range(100):
            turned = torch.stack((q[..., ::2] * 0.5, q[..., 1::2] + 0.5), dim=-1).flatten(-2)
            found = (turned @ k.transpose(-1, -2) * 0.25).softmax(dim=-1) @ v
        return found

    return run


@pytest.fixture
def guard(benchmark) -> Callable[..., None]:
    """Time some work in rounds, each between two laps of a reference; all by the CPU time of this process."""

    def run(work: Callable[[], object], reference: Callable[[], object], rounds: int = ROUNDS) -> None:
        torch.set_num_threads(1)
        work_s, lap_s = (min(_lap(one) for _ in range(2)) for one in (work, reference))
        inner = max(1, ceil(_LEAST_S / max(work_s, 1e-9)))
        laps, each = list[float](), max(1, round(_SHARE * work_s / lap_s))

        def lap() -> None:
            gc.collect()
            laps.append(_lap(lambda: [reference() for _ in range(each)]) / each)

        def repeated() -> None:
            for _ in range(inner):
                work()

        with _no_collector():
            benchmark.pedantic(repeated, setup=lap, teardown=lap, rounds=rounds, iterations=1)
        beside = [(before + after) / 2 for before, after in zip(laps[::2], laps[1::2], strict=True)][-rounds:]
        benchmark.extra_info.update(inner=inner, reference_s=beside)

    return run


@contextmanager
def _no_collector() -> Iterator[None]:
    """A collection that falls into a lap walks through all records there are, and is worth several laps."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


def _lap(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


@pytest.hookimpl(optionalhook=True)  # its judge is tested where pytest-benchmark is not installed
def pytest_benchmark_update_machine_info(config: object, machine_info: dict[str, object]) -> None:
    """The hardware, and never a host's name."""
    cpu = machine_info.get("cpu")
    brand = cpu.get("brand_raw", "cpu") if isinstance(cpu, dict) else "cpu"
    machine_info.update(node="", machine=slug(f"{brand} {torch.get_num_threads()} cores"), torch=torch.__version__)
