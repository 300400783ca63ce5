"""What a run of scripts/gpu.sh came to, as Markdown: how long each step took, fused ratios, and shares of the peak."""

import sys
from collections.abc import Iterator
from pathlib import Path

from grape_bench.registry import Registry
from grape_bench.renderers.markdown import Markdown
from grape_bench.sections.costs import costs
from grape_bench.sections.peak import peak
from grape_bench.store import Store
from grape_bench.suite import Suite, expand, load
from grape_bench.table import Entry, Figure, Report, Section, Table
from grape_bench.view import View

PEAKS = ("gpu-cost", "long")  # suites in half precision
ENDS = {0: "", 1: "something failed", 75: "stopped at its limit", 124: "out of time", 137: "out of time, and killed"}


def main(steps: Path, results: Path, suites: Path) -> str:
    """The summary.

    Args:
        steps: lines of a name, seconds and an exit code; results: the records; suites: the folder of suites that ran.
    """
    store = Store(results)
    sections = [_steps(steps), *_sections(store, suites)]
    environments = [one.environment for one in _view(store, load(suites / "fused.yaml")).machines]
    about = "; ".join(f"{one.device}, torch {one.torch}, driver {one.driver or 'none'}" for one in environments)
    return str(Markdown().render(Report("gpu", "A GPU run", about, tuple(sections))))


def _steps(path: Path) -> Section:
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        name, seconds, code = line.split("\t")
        rows.append((Entry(name), Entry(seconds), Entry(ENDS.get(int(code), f"exit code {code}"))))
    return Section("steps", "Steps", (Table("steps-table", "Wall time", ("step", "seconds", "end"), tuple(rows)),))


def _sections(store: Store, suites: Path) -> Iterator[Section]:
    if (found := costs(_view(store, load(suites / "fused.yaml")))) is not None:
        pieces = tuple(piece for piece in found.pieces if not isinstance(piece, Figure))
        yield Section("fused", "Fused: ratios to rotation", pieces)
    for name in PEAKS:
        if (found := peak(_view(store, load(suites / f"{name}.yaml")))) is not None:
            yield Section(f"peak-{name}", f"Share of the bfloat16 peak: {name}", found.pieces)


def _view(store: Store, suite: Suite) -> View:
    return View.of(suite, expand(suite), store.records(suite.name), Registry("metrics"))


if __name__ == "__main__":
    print(main(*map(Path, sys.argv[1:4])), end="")
