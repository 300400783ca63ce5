"""What the first run on an H200 should measure: figures by arithmetic, for docs/gpu-predictions.md.

`python scripts/gpu_predictions.py` prints them; with `--write` it puts them between the marks of the page.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from tabulate import tabulate

from grape_bench.cell import AccuracyCell, Block, CostCell
from grape_bench.flops import PEAK_TFLOPS, attention_flops
from grape_bench.suite import Suite, expand, group, load, narrow
from grape_bench.timing import EFFORTS
from grape_bench.trainer import steps_by_length
from grape_bench.tuning import candidates

HOME = Path(__file__).resolve().parents[1]
PAGE = HOME / "docs" / "gpu-predictions.md"
BEGIN, END = "<!-- figures -->\n", "<!-- /figures -->\n"

# The chip, by its data sheet.
BF16, FP32, HBM = PEAK_TFLOPS["NVIDIA H200"] * 1e12, 67e12, 4.8e12  # operations and bytes a second
# Guesses, which the first run is to correct.
FUSED_BF16 = {"forward_ms": 0.55, "forward_backward_ms": 0.45}  # shares of the peak, of long attention by cuDNN
FUSED_FP32 = 35e12  # operations a second: float32 attention as three TF32 products, through registers
LINEAR_FP32 = 50e12
STREAM = 0.85 * HBM  # of kernels that only read and write
DECODE = 0.7 * HBM  # of one query against a cache
LAUNCH_S, STEP_LAUNCHES = 8e-6, 900  # host time of one launch; launches of a plain step of four layers
REPLAY_S = 1.2e-6  # the GPU's own time between two kernels of a graph
PASSES = 126  # times that a step reads or writes a (tokens, C) array of float32 in one layer
FLEX_FP32 = 20e12  # operations a second of a compiled kernel, whose float32 products run on no tensor core
ATOMICS = 1e11  # additions a second into captured tensors, in the backward pass of a compiled kernel
START_S, GATE_S, COMPILE_S, CACHED_S, REPORT_S = 1.5, 0.5, 10.0, 2.0, 3.0
ROUNDS, WARMUP = 10, 9  # samples of a member in one process
TRAININGS_AT_ONCE = 4
COMPILED = ("alibi", "rope + fourier(periods=8)", "rope + t5")  # through `auto`, unless one query is decoded
MEMORY = ("encoding=none", "encoding=rope + t5", "length=512", "length=2048", "length=8192")  # as in gpu.sh


def text() -> str:
    """All figures as Markdown tables."""
    parts = [_walls(), _fused(), _bf16(), _decoding(), _source_table()]
    return "\n".join(f"{part}\n" for part in parts)


def cells(name: str) -> tuple[Suite, tuple[CostCell | AccuracyCell, ...]]:
    suite = load(HOME / "suites" / f"{name}.yaml")
    return suite, expand(suite)


def fused_s(cell: CostCell) -> float:
    """Seconds of the attention of a cost cell without an encoding."""
    if cell.metric == "decode_ms":
        return cache_bytes(cell) / DECODE
    rate = FUSED_FP32 if cell.dtype == "float32" else FUSED_BF16[cell.metric] * BF16
    return attention_flops(cell) / rate


def rotation_s(cell: CostCell) -> float:
    """Seconds of turning queries and keys: read, widen to float32, turn and round, and the same for gradients."""
    passes = {"forward_ms": 1, "forward_backward_ms": 2}.get(cell.metric, 0)
    numbers = cell.batch * cell.length * cell.head_dim * (cell.heads + (cell.kv_heads or cell.heads))
    return passes * numbers * 20 / STREAM


def cache_bytes(cell: CostCell) -> int:
    """Keys and values in bfloat16, read once."""
    return 2 * 2 * cell.batch * (cell.kv_heads or cell.heads) * cell.head_dim * cell.length


def _fused() -> str:
    """Members of fused.yaml: their kernel, the matrix that goes through memory, and additions into what is learned."""
    _, asked = cells("fused")
    rows, rope_s = [], 0.0
    for cell, channels, passes in zip(asked, (0, 0, 0, 16, 1, 0, 0), (0, 0, 0, 0, 0, 7, 11), strict=True):
        assert isinstance(cell, CostCell)
        compiled = cell.backend == "auto" and cell.encoding in COMPILED
        kernel = attention_flops(cell) / (FLEX_FP32 if compiled else FUSED_FP32)
        kernel *= 2 if cell.backend == "sdpa" else 1  # a dense mask hides the future, and no block of it is skipped
        matrix = passes * 4 * cell.heads * cell.length**2 / STREAM
        atomics = channels * cell.heads * cell.length**2 / 2 / ATOMICS
        turned = rotation_s(cell) if "rope" in cell.encoding else 0.0
        whole = kernel + matrix + atomics + turned
        rope_s = whole if cell.encoding == "rope" else rope_s
        rows.append((cell.encoding, cell.backend, *map(_ms, (kernel, matrix, atomics, turned, whole)), whole))
    shown = [(*row[:-1], f"{float(row[-1]) / rope_s:.2f}") for row in rows]
    return _table(("fused", "backend", "kernel", "matrix", "atomics", "turning", "ms", "ratio to rope"), shown)


def _bf16() -> str:
    rows = []
    for cell in cells("gpu-cost")[1]:
        if isinstance(cell, CostCell) and cell.encoding in ("none", "rope"):
            seconds = fused_s(cell) + (rotation_s(cell) if cell.encoding == "rope" else 0)
            share = attention_flops(cell) / seconds / BF16
            least = attention_flops(cell) / BF16
            rows.append((cell.metric, cell.encoding, cell.length, _ms(least), _ms(seconds), f"{100 * share:.0f} %"))
    return _table(("gpu-cost", "encoding", "tokens", "ms at the peak", "ms predicted", "share of the peak"), rows)


def _decoding() -> str:
    rows = [
        (cell.kv_heads or cell.heads, cell.length, f"{cache_bytes(cell) / 2**20:.0f}", *_both(cell))
        for cell in cells("long")[1]
        if isinstance(cell, CostCell) and cell.metric == "decode_ms" and cell.encoding == "none"
    ]
    return _table(("key heads", "tokens", "MiB of cache", "µs at 4.8 TB/s", "µs predicted"), rows)


def _both(cell: CostCell) -> tuple[str, str]:
    return f"{1e6 * cache_bytes(cell) / HBM:.0f}", f"{1e6 * fused_s(cell):.0f}"


def step_s(cell: AccuracyCell, length: int) -> tuple[float, float, float]:
    """Seconds of attention, linear layers and memory traffic of one step in float32, without an encoding."""
    width, batch, layers = cell.model.width, cell.training.batch, cell.model.layers - 1 + 1 / 6
    tokens = batch * length  # the last layer computes keys and values for all, a sixth of its products
    attention = 7 * 2 * width * batch * length**2 * (cell.model.layers - 1) / FUSED_FP32
    linear = 6 * tokens * 12 * width**2 * layers / LINEAR_FP32
    return attention, linear, PASSES * 4 * width * tokens * layers / STREAM


def bias_s(cell: AccuracyCell, length: int) -> float:
    """Seconds that a step reads a dense bias for each sequence three times, and writes and sums its gradient."""
    matrix = 4 * cell.model.heads * length**2
    return (3 + 2) * cell.training.batch * matrix * (cell.model.layers - 1) / STREAM


def training_s(cell: AccuracyCell) -> float:
    """Seconds of the device for one training: of each length, its steps with what they compute and launch."""
    return sum(
        count * (sum(step_s(cell, length)) + bias_s(cell, length) * _biased(cell) + REPLAY_S * STEP_LAUNCHES)
        for length, count in _drawn(cell.model_copy(update={"encoding": "none"})).items()
    )


@cache
def _drawn(cell: AccuracyCell) -> Counter[int]:
    return steps_by_length(cell)


def test_s(cell: AccuracyCell) -> float:
    """Seconds of the device for the tests: two of the seven products, a third of the linear work and of the traffic."""
    share = cell.training.test_examples / cell.training.batch
    found = [step_s(cell, length) for length in cell.test_lengths]
    return share * sum(2 / 7 * attention + linear / 3 + traffic / 3 for attention, linear, traffic in found)


def _biased(cell: AccuracyCell) -> bool:
    return any(name in cell.encoding for name in ("t5", "clamp", "alibi", "fourier"))


def _trainings(suite: str) -> Iterator[AccuracyCell]:
    """Those of a suite, and those that tune it, each once."""
    asked = [one for one in cells(suite)[1] if isinstance(one, AccuracyCell)]
    yield from dict.fromkeys([*asked, *(one for cell in asked for one in candidates(cell))])


def _source_table() -> str:
    rows, whole = [], 0.0
    trainings = list(_trainings("source-table"))
    for task in dict.fromkeys(one.task for one in trainings):
        of = [one for one in trainings if one.task == task]
        longest = step_s(of[0], of[0].train_length)
        trained, tested = sum(map(training_s, of)), sum(map(test_s, of))
        whole += trained + tested
        figures = (f"{1e3 * one:.1f}" for one in (*longest, bias_s(of[0], of[0].train_length)))
        rows.append((task, len(of), *figures, f"{training_s(of[0]):.1f}", f"{(trained + tested) / 60:.1f}"))
    rows.append(("all", len(trainings), "", "", "", "", "", f"{whole / 60:.1f}"))
    columns = ("source-table", "trainings", "attention", "linear", "traffic", "dense bias", "s a training", "minutes")
    foot = "Attention, linear, traffic and dense bias: ms of one step at the training length."
    return f"{_table(columns, rows)}\n\n{foot}"


def _walls() -> str:
    rows = [
        (name, f"{seconds:.0f}")
        for name, seconds in (
            ("fused", _wall("fused")),
            ("gpu-cost", _wall("gpu-cost")),
            ("gpu-accuracy", _accuracy_wall("gpu-accuracy")),
            ("long, decode cells", _wall("long", "metric=decode_ms")),
            ("memory, two encodings at three lengths", _wall("memory", *MEMORY)),
            ("all of memory", _wall("memory")),
            ("all of long", _wall("long")),
            ("registers", sum(training_s(one) + test_s(one) for one in _trainings("registers"))),
        )
    ]
    return _table(("suite", "seconds predicted"), rows)


def _wall(name: str, *only: str) -> float:
    suite, asked = cells(name)
    blocks = narrow(group(asked, suite.baseline, suite.vary), only)
    processes = suite.processes or EFFORTS[suite.effort].processes
    return REPORT_S + sum(_block_s(block, 1 if block.cells[0].metric == "peak_mib" else processes) for block in blocks)


def _block_s(block: Block, processes: int) -> float:
    members = [one for one in block.cells if isinstance(one, CostCell)]
    compiled = sum(one.encoding in COMPILED and one.backend == "auto" and one.metric != "decode_ms" for one in members)
    timed = [one for one in members if one.metric != "peak_mib"]
    samples = sum(fused_s(one) for one in timed) * (ROUNDS + WARMUP)
    one_process = START_S + GATE_S * len(members) + samples
    return processes * one_process + compiled * (COMPILE_S + CACHED_S * (processes - 1))


def _accuracy_wall(name: str) -> float:
    trainings = list(_trainings(name))
    launched = sum(one.training.steps * REPLAY_S * STEP_LAUNCHES for one in trainings)
    recorded = len(trainings) * (START_S + 2 * LAUNCH_S * STEP_LAUNCHES)
    return REPORT_S + recorded / TRAININGS_AT_ONCE + launched + sum(map(test_s, trainings))


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g}"


def _table(columns: Iterable[str], rows: Iterable[tuple[object, ...]]) -> str:
    return tabulate(rows, list(columns), tablefmt="pipe", disable_numparse=True)


def written(page: str) -> str:
    """The page with the figures between its marks."""
    above, rest = page.split(BEGIN)
    return f"{above}{BEGIN}{text()}{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(text(), end="")
