"""How long RoPE takes on queries and keys, ours against each peer in the same rounds: `python tests/peers/speed.py`.

CPU time of one thread at (B, H, T, D) = (1, 8, 2048, 64) in float32. What depends on positions alone was computed
before, as it is once for all layers of a model. Each is given memory in the order that it takes. The best is looked for
among those that compute it otherwise; a twin, whose formula is ours, tells what is left, which is the order of memory.
"""

import gc
from collections.abc import Callable
from multiprocessing import get_context
from statistics import median

import torch
from rotary import Peer, peers
from tabulate import tabulate

from grape_bench.encodings import At, Site, build
from grape_bench.interval import Interval, joint, paired_ratio
from grape_bench.ranking import seed_of
from grape_bench.rounds import interleave
from grape_bench.timing import Effort, stopwatch

SHAPE = (1, 8, 2048, 64)
EFFORT = Effort(pairs=8, processes=5, warmup=3, sample_ms=20.0)
LAYOUTS = ("interleaved", "half")
OURS = "ours"
Times = dict[str, tuple[float, ...]]


def main() -> None:
    """Print a table and a line for each layout."""
    for layout in LAYOUTS:
        with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:  # a fresh process for each
            processes = pool.starmap(measure, [(layout, run) for run in range(EFFORT.processes)], chunksize=1)
        typical = {name: median(ms for times in processes for ms in times[name]) for name in processes[0]}
        rivals = [name for name in typical if name != OURS]
        ratios = {name: _ratio(processes, name, layout, len(rivals)) for name in rivals}
        twins = [one.name for one in peers(layout, SHAPE[2], SHAPE[3]) if one.twin]
        best = max((name for name in rivals if name not in twins), key=lambda name: ratios[name].mid)
        order = [OURS, *sorted(rivals, key=lambda name: -ratios[name].mid)]
        rows = [[name, f"{typical[name]:.2f}", _text(ratios[name]) if name in ratios else "1"] for name in order]
        head = [f"rope, {layout}", "ms, median", f"ours / theirs, all {len(rivals)} at 95 %"]
        print(tabulate(rows, head, disable_numparse=True))
        print(f"ours takes {_text(ratios[best])} of the time of the best, {best}")
        print(*(f"and {_text(ratios[name])} of {name}, the same formula" for name in twins), "", sep="\n")


def measure(layout: str, run: int) -> Times:
    """Milliseconds of ours and of each peer, round by round, after all gave the same."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    _, heads, length, size = SHAPE
    q, k = (torch.randn(SHAPE, generator=torch.Generator().manual_seed(seed)) for seed in (0, 1))
    encoding = build(f"rope(layout={layout!r})", Site(heads * size, heads, heads, size, length, length))
    at = At(q, torch.arange(length), torch.arange(length), uniform=True)
    ours = Peer(OURS, lambda q, k: encoding.rotate(q, k, None, at))
    members = [ours, *peers(layout, length, size)]
    works = [_work(one, q, k) for one in members]
    for one, work in zip(members, works, strict=True):
        for got, expected in zip(work(), works[0](), strict=True):
            torch.testing.assert_close(one.order(got), expected, rtol=0, atol=1e-3)  # an angle of 2047 in float32
    gc.collect()
    gc.disable()
    readings = interleave(works, stopwatch(), EFFORT, seed=run, before=lambda index: None)
    return {one.name: reading.samples_ms for one, reading in zip(members, readings, strict=True)}


def _work(one: Peer, q: torch.Tensor, k: torch.Tensor) -> Callable[[], tuple[torch.Tensor, torch.Tensor]]:
    q, k = one.order(q), one.order(k)
    return lambda: one.turn(q, k)


def _ratio(processes: list[Times], name: str, layout: str, family: int) -> Interval:
    ours, theirs = ([times[one] for times in processes] for one in (OURS, name))
    return paired_ratio(ours, theirs, seed=seed_of(layout, name), level=joint(family))


def _text(ratio: Interval) -> str:
    return f"{ratio.mid:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"


if __name__ == "__main__":
    main()
