"""One class of benchmarks for each grid of the suites beside this file; the runner measures, asv remembers.

asv takes this file from the working tree and the package from the commit under test, and finds a cell again by its
place in a list. So names and parameters are read here from YAML, and nothing of the package is imported before a
`setup_cache` runs: an older package could order them otherwise and put one encoding's figures under another's name.
For the same reason all of it stands in this one file, which is longer than others.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import yaml

if TYPE_CHECKING:
    from grape_bench.cell import Cell
    from grape_bench.outcome import Outcome
    from grape_bench.record import Record

PROTOCOL = 1  # raised when the same name and grid would mean another figure
MEASURED = ("history",)  # suites that `asv run` measures; others beside it are filled by `grape-bench history export`
_TIMEOUT_S = 1800
# Keys of a cost grid that become parameters where they list several values, with the cell's name for each.
_AXES = {
    "heads": "heads", "kv_heads": "kv_heads", "head_dim": "head_dim", "batch": "batch", "dtypes": "dtype",
    "backends": "backend",
}  # fmt: skip

Kind = Literal["cost", "accuracy"]
Key = tuple[str, ...]
_KINDS: tuple[Kind, ...] = ("cost", "accuracy")


class Answer(NamedTuple):
    """What is known of one cell: its figure as asv takes it, or the sentence why there is none."""

    standing: Literal["ok", "skipped", "failed", "missing"]
    figure: Any = None
    sentence: str = ""


@dataclass(frozen=True)
class Grid:
    """One entry of `cost` or `accuracy`, and the class that asv sees of it.

    Args:
        suite: the file's stem; name: of the class, where `-` is no letter; text: a suite with this entry alone.
        axes: parameter names with their values, the first changing slowest; given: the entry as the file has it.
    """

    suite: str
    kind: Kind
    name: str
    text: str
    axes: dict[str, list[Any]]
    given: dict[str, Any]

    @property
    def tracks(self) -> dict[str, tuple[str, str]]:
        """Metrics by the names of their benchmarks, each with its unit; derived metrics have no samples to track."""
        if self.kind == "accuracy":
            return {"track_extrapolation_error": ("accuracy", "error")}
        found = {}
        for metric in self.given["metrics"]:
            if metric.endswith("_ms"):
                found[f"track_{metric.removesuffix('_ms')}_time"] = (metric, "seconds")
            elif metric == "peak_mib":
                found["track_peak_memory"] = (metric, "bytes")
        return found

    @property
    def version(self) -> str:
        """Changes with all that is no parameter, so that unlike figures are never joined into one line."""
        free = {"encodings", "lengths", "test_lengths", "metrics", *_listed(self.given)}
        fixed = {key: value for key, value in self.given.items() if key not in free}
        return f"{PROTOCOL}-{hashlib.sha256(json.dumps(fixed, sort_keys=True).encode()).hexdigest()[:8]}"

    def points(self) -> Iterator[tuple[Any, ...]]:
        """The parameters of each cell in asv's order."""
        return product(*self.axes.values())

    def answers(self, records: Iterable["Record"]) -> dict[Key, Answer]:
        """What records say of each benchmark at each point, by `key`."""
        from grape_bench.outcome import outcomes
        from grape_bench.suite import expand, parse

        suite = parse(self.text, f"{self.suite}.yaml")
        canonical = dict(zip(yaml.safe_load(self.text)["encodings"], suite.encodings, strict=True))
        found = list(outcomes(expand(suite), records).values())
        return {
            self.key(track, point): next(
                (_answer(one, at) for one in found if _is(one.cell, metric, at, canonical)), Answer("missing")
            )
            for track, (metric, _) in self.tracks.items()
            for point in self.points()
            for at in [dict(zip(self.axes, point, strict=True))]
        }

    def key(self, track: str, point: Iterable[Any]) -> Key:
        return (self.name, track, *map(repr, point))


def _is(cell: "Cell", metric: str, at: dict[str, Any], canonical: dict[str, str]) -> bool:
    if cell.metric != metric or cell.encoding != canonical[at["encoding"]]:
        return False
    if cell.kind == "accuracy":
        return bool(cell.seed == at["seed"])
    same = [getattr(cell, key) == value for key, value in at.items() if key not in ("encoding", "kv_heads")]
    keys = (cell.kv_heads or cell.heads) == (at.get("kv_heads") or cell.heads) if "kv_heads" in at else True
    return keys and all(same)


def _answer(outcome: "Outcome", at: dict[str, Any]) -> Answer:
    if outcome.standing != "ok":
        return Answer(outcome.standing, sentence=f"{outcome.fault} {outcome.message}".strip())
    readings: list[Any] = [record.reading for record in outcome.records]
    if readings[-1].kind == "time":
        return Answer("ok", {"samples": [ms / 1000 for one in readings for ms in one.samples_ms], "number": 1})
    if readings[-1].kind == "memory":
        return Answer("ok", readings[-1].peak_mib * 2**20)
    wanted = (at["length"], readings[-1].headline)
    score = next(one for one in readings[-1].scores if (one.length, one.group) == wanted)
    return Answer("ok", (score.total - score.correct) / score.total)


def grids(folder: Path = Path(__file__).parent / "suites") -> Iterator[Grid]:
    """The grids of all suites in a folder, that beside this file."""
    for path in sorted(folder.glob("*.yaml")):
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
        values.pop("regressions", None)  # says how to read figures, and an older package does not know it
        entries = [(kind, one) for kind in _KINDS for one in values.pop(kind, None) or ()]
        names: list[str] = []
        for kind, one in entries:
            what = one.get("scope", "attention") if kind == "cost" else one["task"].partition("(")[0]
            names.append(re.sub(r"\W+", "_", f"{path.stem}_{what}"))
            count = names.count(names[-1])
            yield Grid(
                suite=path.stem,
                kind=kind,
                name=names[-1] + (f"_{count}" if count > 1 else ""),
                text=yaml.safe_dump({**values, kind: [one]}),
                axes=_cost_axes(one, values) if kind == "cost" else _accuracy_axes(one, values),
                given=one,
            )


def _listed(one: dict[str, Any]) -> dict[str, list[Any]]:
    return {key: one[key] for key in _AXES if len(one.get(key, ())) > 1}


def _cost_axes(one: dict[str, Any], values: dict[str, Any]) -> dict[str, list[Any]]:
    more = {_AXES[key]: listed for key, listed in _listed(one).items()}
    return {"encoding": one.get("encodings", values["encodings"]), "length": one["lengths"], **more}


def _accuracy_axes(one: dict[str, Any], values: dict[str, Any]) -> dict[str, list[Any]]:
    beyond = [length for length in one["test_lengths"] if length > one["train_length"]]
    encodings = one.get("encodings", values["encodings"])
    return {"encoding": encodings, "length": beyond, "seed": values.get("seeds", [0])}


def _measure(kind: Kind) -> dict[Key, Answer] | str:
    """Run the blocks of all grids of a kind; or the sentence why this commit's package cannot."""
    try:
        from grape_bench.errors import UserError
        from grape_bench.runner import RunOptions, run
        from grape_bench.store import Store
        from grape_bench.suite import parse
    except ImportError as error:
        return f"the package of this commit has no such runner: {error}"
    found: dict[Key, Answer] = {}
    for grid in grids():
        if grid.kind == kind and grid.suite in MEASURED:
            with TemporaryDirectory() as folder:
                try:
                    run(parse(grid.text, f"{grid.suite}.yaml"), RunOptions(results=Path(folder)))
                except UserError as error:
                    return str(error)
                found |= grid.answers(Store(Path(folder)).records(grid.suite))
    return found


class _Benchmarks:
    """What the classes share. asv has no figure for a cell that was skipped, and says failed of one that failed."""

    grid: Grid

    def setup(self, found: dict[Key, Answer] | str, *point: Any) -> None:
        if isinstance(found, str):
            raise NotImplementedError(found)
        if self.grid.suite not in MEASURED:
            raise NotImplementedError("filled by `grape-bench history export`")


class _Cost(_Benchmarks):
    def setup_cache(self) -> dict[Key, Answer] | str:
        return _measure("cost")

    setup_cache.timeout = _TIMEOUT_S  # type: ignore[attr-defined]


class _Accuracy(_Benchmarks):
    # asv keeps a cache for each line of source: a class of its own, so that `--bench time` does not train.
    def setup_cache(self) -> dict[Key, Answer] | str:
        return _measure("accuracy")

    setup_cache.timeout = _TIMEOUT_S  # type: ignore[attr-defined]


def _track(name: str, unit: str) -> Callable[..., Any]:
    def track(self: _Benchmarks, found: dict[Key, Answer], *point: Any) -> Any:
        from asv_runner.benchmarks.mark import SkipNotImplemented

        answer = found[self.grid.key(name, point)]
        if answer.standing == "skipped":
            raise SkipNotImplemented(answer.sentence)
        if answer.standing != "ok":
            raise RuntimeError(answer.sentence or "no record of this cell")
        return answer.figure

    track.unit = unit  # type: ignore[attr-defined]
    track.pretty_name = name.removeprefix("track_").replace("_", " ")  # type: ignore[attr-defined]
    return track


def _class(grid: Grid) -> type[_Benchmarks]:
    """The class of a grid, which asv finds as a name of this module."""
    attributes = {
        "__module__": __name__,
        "grid": grid,
        "timeout": 120,
        "version": grid.version,
        "param_names": list(grid.axes),
        "params": list(grid.axes.values()),
        **{name: _track(name, unit) for name, (_, unit) in grid.tracks.items()},
    }
    return type(grid.name, (_Cost if grid.kind == "cost" else _Accuracy,), attributes)


globals().update({grid.name: _class(grid) for grid in grids()})
