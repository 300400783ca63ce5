"""Holds the newest run of tests/bench against the first one of its machine, in units of each run's own reference.

`python tests/bench/gate.py results/pytest-benchmark` ends with 3 where something became slower beyond the margin. To
accept a slower harness, remove the runs from before it.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tabulate import tabulate

from grape_bench.interval import unpaired_ratio
from grape_bench.ranking import Comparison, judge, seed_of

MARGIN = 0.10  # of the ratio to the reference; between two runs of a busy machine it moves by some 3 %
_SAME = ("machine", "python_version", "torch")


@dataclass(frozen=True)
class Run:
    """One run, the ratios of each benchmark round by round."""

    machine: tuple[str, ...]
    ratios: dict[str, list[float]]


def read(path: Path) -> Run:
    """A file of pytest-benchmark that was saved with its data."""
    data = json.loads(path.read_text(encoding="utf-8"))
    ratios = {}
    for one in data["benchmarks"]:
        more = one["extra_info"]
        laps = zip(one["stats"]["data"], more["reference_s"], strict=True)
        ratios[one["fullname"]] = [work / more["inner"] / reference for work, reference in laps]
    return Run(tuple(str(data["machine_info"].get(key)) for key in _SAME), ratios)


def verdicts(runs: Sequence[Run], margin: float = MARGIN) -> Iterator[tuple[str, Comparison]]:
    """The newest run's benchmarks, each against the first run of the same machine that has it.

    Args:
        runs: oldest first.
    """
    *earlier, newest = runs
    for name, now in newest.ratios.items():
        first = next((one for one in earlier if one.machine == newest.machine and name in one.ratios), None)
        if first is not None:
            interval = unpaired_ratio([now], [first.ratios[name]], seed=seed_of(name))
            word = judge(interval, (1 / (1 + margin), 1 + margin), ("faster", "slower"))
            yield name, Comparison(word, interval, margin, paired=False)


def main(folder: Path) -> int:
    """Print a table; 3 where a benchmark is slower, otherwise 0."""
    paths = sorted(folder.glob("*/*.json"), key=lambda path: path.name)
    found = list(verdicts([read(path) for path in paths]))
    if not found:
        print(f"no earlier run of this machine in {folder}: the next one will be held against this one")
        return 0
    rows = [
        [
            name.rpartition("::")[2],
            f"{one.interval.mid:.3f} [{one.interval.low:.3f}, {one.interval.high:.3f}]",
            one.word,
        ]
        for name, one in found
    ]
    print(tabulate(rows, ["benchmark", "now / first, 95 % interval", f"margin {MARGIN:.0%}"], disable_numparse=True))
    return 3 if any(one.word == "slower" for _, one in found) else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
