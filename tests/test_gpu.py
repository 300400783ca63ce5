"""What only a GPU can show: kernels, events, graphs, NVML and the caching allocator. Skipped where there is none."""

import re
from itertools import product

import pytest
import torch

from grape_bench import gate, memory, nvml
from grape_bench.cell import AccuracyCell, Block, CostCell, ModelOptions, TrainingOptions
from grape_bench.environment import observe, uuid
from grape_bench.errors import Unsupported
from grape_bench.gpu.stopwatch import GpuStopwatch
from grape_bench.gpu.stream import TorchStream
from grape_bench.gpu.timer import GpuTimer
from grape_bench.registry import Registry
from grape_bench.rounds import MemberError
from grape_bench.timing import Effort
from grape_bench.worker import Protocol, measure, prepare_process

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


@pytest.fixture(scope="module")
def stopwatch():
    prepare_process(1)
    return GpuStopwatch(TorchStream())


def ready(stopwatch, *operations):
    return stopwatch.ready(operations, 5.0, lambda index: None)


def lap(stopwatch, way):
    return stopwatch.lap(way, way.calls([way.work_ms], 5.0))


def test_events_time_what_the_device_does(stopwatch):
    matrix = torch.randn(4096, 4096, device="cuda")
    one, many = ready(stopwatch, lambda: matrix @ matrix, lambda: [matrix @ matrix for _ in range(8)])
    assert one.mode == many.mode == "events"
    (single, wall), (several, _) = lap(stopwatch, one), lap(stopwatch, many)
    assert 0 < single <= wall
    assert several == pytest.approx(8 * single, rel=0.15)


def test_a_short_kernel_is_replayed_and_its_launches_are_not_counted(stopwatch):
    x = torch.zeros(2**14, device="cuda")

    def often():
        for _ in range(20):
            x.add_(1.0)

    once, twenty = ready(stopwatch, lambda: x.add_(1.0), often)
    assert once.mode == twenty.mode == "graph"
    single, several = lap(stopwatch, once)[0], lap(stopwatch, twenty)[0]
    assert 0.0005 < single < 0.02, "a kernel of 64 KiB takes a few microseconds"
    assert several < twenty.plain_ms, "twenty launches take the host longer than the device"


def test_a_replay_does_what_was_captured(stopwatch):
    x = torch.zeros(1024, device="cuda")
    (way,) = ready(stopwatch, lambda: x.add_(1.0))
    torch.cuda.synchronize()
    before = x[0].item()
    way.lap(way.size)
    torch.cuda.synchronize()
    assert x[0].item() - before == way.size


def test_replays_agree_with_events(stopwatch):
    matrix = torch.randn(1024, 1024, device="cuda")

    def run():
        return [matrix @ matrix for _ in range(4)]

    events = stopwatch.events(run)
    graph = stopwatch.captured(events, 5.0)
    assert (events.mode, graph.mode) == ("events", "graph")
    assert events.lap(20) == pytest.approx(graph.lap(graph.size), rel=0.15, abs=0.005)


def test_a_gradient_is_captured(stopwatch):
    q, k, v = (torch.randn(1, 4, 128, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
    direction = torch.randn_like(q)

    def run():
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return torch.autograd.grad(out, (q, k, v), direction)

    (way,) = ready(stopwatch, run)
    assert (way.mode, way.uncaptured) == ("graph", None)
    assert 0 < lap(stopwatch, way)[0] < way.plain_ms


def test_flushes_overwrite_twice_the_cache_and_cool_it(stopwatch):
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    assert stopwatch.stream.flushed_mib * 2**20 >= 2 * cache
    source = torch.randn(cache // 16, device="cuda")  # a quarter of it, in float32
    cold = stopwatch.events(source.sum).lap(20)
    warm = []
    for _ in range(20):
        source.sum()
        torch.cuda._sleep(1_000_000)  # the launch is queued meanwhile
        start = stopwatch.stream.mark()
        source.sum()
        warm.append((start, stopwatch.stream.mark()))
    torch.cuda.synchronize()
    assert cold > min(start.elapsed_time(end) for start, end in warm)


@pytest.mark.parametrize(
    ("wait", "reason"),
    [(lambda x: x.sum().item(), "synchroniz"), (lambda x: torch.cuda.synchronize(), "captur")],
    ids=["a value that the host reads", "a wait that breaks a capture"],
)
def test_what_waits_is_not_captured_and_harms_nobody_after_it(stopwatch, wait, reason):
    x = torch.ones(1024, device="cuda")
    waiting, after = ready(stopwatch, lambda: wait(x), lambda: x.mul_(1.0))
    assert waiting.mode == "events"
    assert re.search(reason, waiting.uncaptured)
    assert after.mode == "graph", after.uncaptured
    assert lap(stopwatch, waiting)[0] > 0
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    torch.cuda.empty_cache()
    assert torch.randn(8, device="cuda").isfinite().all()


def test_nvml_knows_this_gpu():
    state = nvml.Gpu(uuid()).state()
    assert 100 < state.sm_mhz < 5000
    assert 0 < state.temperature_c < 120
    assert state.power_w is None or 10 < state.power_w < 3000
    assert state.others in (0, None), "somebody else computes on this GPU"


def test_flags_are_what_torch_says():
    prepare_process(1)
    assert not observe("cuda").tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.use_deterministic_algorithms(True)
    try:
        seen = observe("cuda")
    finally:
        prepare_process(1)
    assert (seen.tf32, seen.deterministic) == (True, True)
    assert seen.device.startswith(torch.cuda.get_device_name())


def test_memory_that_runs_out_in_a_round_is_blamed_and_the_rest_is_timed(stopwatch):
    matrix, calls = torch.randn(2048, 2048, device="cuda"), []

    def starve():
        calls.append(None)
        return matrix @ matrix, torch.empty(2**45 if len(calls) > 25 else 1, dtype=torch.uint8, device="cuda")

    timer = GpuTimer(stopwatch.stream, "unwatched in this test")
    effort = Effort(pairs=20, processes=1, warmup=3, sample_ms=0.01, agreement=0.5)
    sound = lambda: matrix @ matrix  # noqa: E731
    with pytest.raises(MemberError) as failed:
        timer.time([sound, starve], effort, seed=1, before=lambda index: None)
    assert failed.value.index == 1
    assert isinstance(failed.value.__cause__, torch.OutOfMemoryError)
    del failed
    memory.release("cuda")
    (reading,) = timer.time([sound], effort, seed=1, before=lambda index: None)
    assert len(reading.samples_ms) == 40


def test_a_member_that_does_not_fit_is_a_result_and_leaves_nothing_behind():
    cells = tuple(
        CostCell(
            metric="forward_ms", encoding="none", backend=one, length=2**18, heads=4, dtype="bfloat16", causal=True
        )
        for one in ("sdpa", "eager")
    )
    done = measure(Block(cells, 0), Protocol(device="cuda", processes=15), lambda note: None)
    assert [(one.cell.backend, one.fault or one.status, one.role) for one in done.results] == [
        ("eager", "oom", "member"),
        ("sdpa", "ok", "member"),
        ("sdpa", "ok", "control"),
    ]
    memory.release("cuda")
    assert torch.cuda.memory_reserved() < 8 * 2**30


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
    assert reading.allocator.startswith(torch.cuda.get_allocator_backend())


def test_a_block_is_timed_and_says_how():
    cells = tuple(
        CostCell(metric="forward_ms", encoding=one, length=128, heads=4, dtype="bfloat16")
        for one in ("none", "rope", "t5")
    )
    done = measure(Block(cells, 0), Protocol(device="cuda", processes=3), lambda note: None)
    assert [one.status for one in done.results] == ["ok"] * 4, [one.message for one in done.results]
    assert done.environment.device.startswith(torch.cuda.get_device_name())
    assert (done.environment.cuda, done.environment.tf32) == (torch.version.cuda, False)
    for one in done.results:
        assert one.reading.clock == "cuda_event"
        assert len(one.reading.samples_ms) >= 10, "a third of thirty"
        assert min(one.reading.samples_ms) > 0
        assert (one.reading.gpu.mode, one.reading.gpu.uncaptured) == ("graph", None)
        assert one.reading.gpu.states or one.reading.gpu.unwatched
        assert any(note.startswith("attended by ") for note in one.notes), one.notes


@pytest.mark.parametrize("metric", ["forward_ms", "forward_backward_ms", "decode_ms"])
@pytest.mark.parametrize("encoding", EACH_KIND)
def test_operations_of_each_kind_can_be_captured(encoding, metric, stopwatch):
    cell = CostCell(metric=metric, encoding=encoding, length=128, heads=4, dtype="bfloat16", causal=True)
    try:
        operation = Registry("metrics")[metric].load()().prepare(cell, "cuda")
        operation()
    except Unsupported as reason:
        pytest.skip(str(reason))
    way = stopwatch.captured(stopwatch.events(operation), 5.0)
    assert way.uncaptured is None


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
