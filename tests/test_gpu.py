"""What only a GPU can show: kernels, events and the caching allocator. Skipped, with a reason, where there is none."""

from itertools import product

import pytest
import torch

from grape_bench import gate, memory, timing
from grape_bench.cell import AccuracyCell, Block, CostCell, ModelOptions, TrainingOptions
from grape_bench.errors import Unsupported
from grape_bench.registry import Registry
from grape_bench.worker import Protocol, measure

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]

DTYPES = ["float32", "bfloat16", "float16"]
ENCODINGS = [
    f"{name}({plugin.facts['around']})" if plugin.wraps else name for name, plugin in Registry("encodings").items()
]
# Every encoding by the way most users run one, and those of each kind of bias on every backend.
EACH_KIND = ("none", "rope", "t5", "alibi", "rope + fourier", "fox", "grape_ap", "cope")
COMBINATIONS = dict.fromkeys(
    [*product(ENCODINGS, ["sdpa", "auto"], ["bfloat16"]), *product(EACH_KIND, Registry("backends"), DTYPES)]
)


@pytest.mark.parametrize(("encoding", "backend", "dtype"), COMBINATIONS)
@pytest.mark.parametrize("causal", [False, True])
def test_every_encoding_agrees_with_the_oracle(encoding, backend, dtype, causal):
    cell = CostCell(
        metric="forward_ms",
        encoding=encoding,
        backend=backend,
        length=64,
        heads=4,
        kv_heads=2,
        dtype=dtype,
        causal=causal,
    )
    try:
        gate.check(cell, "cuda")
    except Unsupported as reason:
        pytest.skip(str(reason))


def test_events_time_what_the_device_does():
    matrix = torch.randn(4096, 4096, device="cuda")
    watch = timing.stopwatch("cuda")
    one, wall = watch.lap(lambda: matrix @ matrix, 1)
    many, _ = watch.lap(lambda: [matrix @ matrix for _ in range(8)], 1)
    assert watch.clock == "cuda_event"
    assert 0 < one <= wall
    assert 4 * one < many < 16 * one


def test_the_peak_is_the_analytic_one():
    size = 64 * 2**20

    def run():
        first = torch.empty(size, dtype=torch.uint8, device="cuda")
        second = torch.empty(2 * size, dtype=torch.uint8, device="cuda")
        del first
        return second

    reading = memory.peak(run, "cuda")
    assert reading.peak_mib == pytest.approx(192, rel=0.01)
    assert reading.reserved_mib >= 192


def test_a_block_is_timed_and_names_the_device():
    cells = tuple(CostCell(metric="forward_ms", encoding=one, length=128, heads=4) for one in ("none", "rope", "t5"))
    done = measure(Block(cells, 0), Protocol(device="cuda"), lambda note: None)
    assert [one.status for one in done.results] == ["ok"] * 4, [one.message for one in done.results]
    assert done.environment.device == torch.cuda.get_device_name()
    assert done.environment.cuda == torch.version.cuda
    assert {one.reading.clock for one in done.results} == {"cuda_event"}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_a_training_runs_on_the_device_and_sees_the_data_of_a_cpu(dtype):
    cell = AccuracyCell(
        task="registers(pairs=2, registers=2, writes=2)",
        encoding="rope + fourier",
        dtype=dtype,
        seed=0,
        train_length=16,
        test_lengths=(16, 32),
        model=ModelOptions(width=16, heads=2),
        training=TrainingOptions(steps=8, batch=4, warmup=2, test_examples=12),
    )
    readings = [
        measure(Block((cell,)), Protocol(device=device), lambda note: None).results[0].reading
        for device in ("cuda", "cpu")
    ]
    assert readings[0].data_sha == readings[1].data_sha
    if dtype == "float32":
        assert readings[0].curve[-1].loss == pytest.approx(readings[1].curve[-1].loss, rel=1e-3)
