"""A suite from its file, and from the suite to cells and blocks."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path

from grape_bench.cell import AccuracyCell, Block, CostCell
from grape_bench.errors import UserError
from grape_bench.expression import Expression
from grape_bench.registry import Registry
from grape_bench.suite_check import at_size, check
from grape_bench.suite_entry import AccuracyGrid, CostGrid
from grape_bench.suite_filter import narrow
from grape_bench.suite_format import Suite, schema
from grape_bench.suite_text import read_text, suite_name
from grape_bench.suite_values import Plugins
from grape_bench.suite_yaml import parse_text

__all__ = ["MODEL_VERSION", "RECIPE_VERSION", "Suite", "expand", "group", "load", "narrow", "parse", "schema"]

MODEL_VERSION = 1  # raised when the model would give other numbers
RECIPE_VERSION = 1  # raised when the training would give other numbers
MOST_CELLS = 20_000  # a second of work for those who list them; a larger question is several suites


def load(path: Path) -> Suite:
    """Read and check a suite's file. Runs no plug-in.

    Raises:
        UserError: the file cannot be read, or one line for each thing that is wrong in it.
    """
    return parse(read_text(path), str(path))


def parse(text: str, source: str) -> Suite:
    """Check a suite's text.

    Args:
        source: the file's path for messages; its stem is the suite's name, and the size where there is an `@` in it.

    Raises:
        UserError: one line for each thing that is wrong.
    """
    name, checked = suite_name(Path(source)), check(parse_text(text, source))
    if size := name.partition("@")[2]:
        checked = at_size(checked, size, source)
    suite = _extended(Suite.model_construct(name=name, **dict(checked)), source)
    if (cells := most(suite)) > MOST_CELLS:
        raise UserError(f"{source}: its axes multiply to {cells:,} cells; a suite has at most {MOST_CELLS:,}")
    return suite


def _extended(suite: Suite, source: str) -> Suite:
    """With what the command line named: encodings the suite does not speak of, backends for its cost grids."""
    encodings, backends = Registry("encodings"), Registry("backends")
    if not encodings.named and not backends.named:
        return suite
    versions = [one for text in suite.encodings for one in Expression.parse(text, encodings).versions()]
    spoken = {version.partition("@")[0] for version in versions}
    new = tuple(str(Expression.parse(name, encodings)) for name in encodings.named if name not in spoken)
    if new and all([*(grid.encodings for grid in suite.cost), *(grid.encodings for grid in suite.accuracy)]):
        raise UserError(f"{source}: no place for {new[0]}: every entry has a list of encodings of its own")
    if backends.named and not suite.cost:
        raise UserError(f"{source}: no place for {backends.named[0]}: a backend joins the entries of 'cost'")
    both = [tuple(dict.fromkeys((*grid.backends, *backends.named))) for grid in suite.cost]
    cost = tuple(grid.model_copy(update={"backends": one}) for grid, one in zip(suite.cost, both, strict=True))
    return suite.model_copy(update={"encodings": (*suite.encodings, *new), "cost": cost})


def most(suite: Suite) -> int:
    """Cells from the sizes of the axes alone, those that fall together counted twice."""
    cost = (math.prod(map(len, _settings(one))) * len(_encodings(one, suite)) for one in suite.cost)
    accuracy = (len(one.dtypes) * len(suite.seeds) * len(_encodings(one, suite)) for one in suite.accuracy)
    return sum(cost) + sum(accuracy)


def expand(suite: Suite) -> tuple[CostCell | AccuracyCell, ...]:
    """Every cell of a suite once: cost grid by grid, then accuracy entry by entry.

    A derived metric has no cells of its own: it asks for those of the metric that it is derived from.
    """
    versions = _Versions(suite)
    cost = (cell for grid in suite.cost for cell in _cost(grid, suite, versions))
    accuracy = (cell for grid in suite.accuracy for cell in _accuracy(grid, suite, versions))
    return tuple(dict.fromkeys([*cost, *accuracy]))


def group(
    cells: Iterable[CostCell | AccuracyCell], baseline: str | None, vary: Sequence[str] = ("encoding",)
) -> list[Block]:
    """Time cells of one setting are one block; each memory cell and each training is its own, seed by seed.

    Args:
        cells: of one suite, as `expand` gives them.
        baseline: canonical text of the encoding that ratios refer to.
        vary: axes along which the members of a block differ.
    """
    settings: dict[CostCell, list[CostCell]] = {}
    seeds: dict[int, list[AccuracyCell]] = {}
    metrics, varied = Registry("metrics"), {**dict.fromkeys(vary), "versions": ()}
    for cell in cells:
        if isinstance(cell, CostCell):
            alone = metrics[cell.metric].facts["kind"] != "time"  # a peak, or compiling, wants a process of its own
            settings.setdefault(cell if alone else cell.model_copy(update=varied), []).append(cell)
        else:
            seeds.setdefault(cell.seed, []).append(cell)
    cost = [Block(tuple(members), _index(members, baseline)) for members in settings.values()]
    return cost + [Block((cell,)) for members in seeds.values() for cell in members]


def _index(members: list[CostCell], baseline: str | None) -> int | None:
    return next((index for index, cell in enumerate(members) if cell.encoding == baseline), None)


def _encodings(grid: CostGrid | AccuracyGrid, suite: Suite) -> tuple[str, ...]:
    return grid.encodings or suite.encodings


def _settings(grid: CostGrid) -> tuple[tuple[object, ...], ...]:
    """The axes of a grid in the order in which they are run through, the slowest first."""
    return (
        grid.metrics,
        grid.backends,
        grid.dtypes,
        grid.batch,
        grid.head_dim,
        grid.heads,
        grid.kv_heads,
        grid.lengths,
    )


def _cost(grid: CostGrid, suite: Suite, versions: "_Versions") -> Iterator[CostCell]:
    fixed = {"scope": grid.scope, "causal": grid.causal, "layers": grid.layers, "compiled": grid.compiled}
    for named, backend, dtype, batch, head_dim, heads, kv_heads, length in product(*_settings(grid)):
        metric = versions.source(str(named))
        setting = {"metric": metric, "backend": backend, "dtype": dtype, "batch": batch, "head_dim": head_dim}
        setting |= {"heads": heads, "kv_heads": None if kv_heads == heads else kv_heads, "length": length}
        for encoding in _encodings(grid, suite):
            of = versions.cost(encoding, metric, str(backend), grid.scope)
            yield CostCell.model_validate({**fixed, **setting, "encoding": encoding, "versions": of})


def _accuracy(grid: AccuracyGrid, suite: Suite, versions: "_Versions") -> Iterator[AccuracyCell]:
    kv_heads = None if grid.model.kv_heads == grid.model.heads else grid.model.kv_heads
    for dtype, seed, encoding in product(grid.dtypes, suite.seeds, _encodings(grid, suite)):
        yield AccuracyCell(
            task=grid.task,
            encoding=encoding,
            backend=grid.backend,
            dtype=dtype,
            seed=seed,
            train_length=grid.train_length,
            test_lengths=grid.test_lengths,
            model=grid.model.model_copy(update={"kv_heads": kv_heads}),
            training=grid.training,
            tune=grid.tune.lr if grid.tune else (),
            controls=grid.controls,
            versions=versions.accuracy(encoding, grid.task, grid.backend),
        )


class _Versions:
    """What could change a cell's number, as `name@version`.

    Args:
        suite: whose expressions are parsed, each once.
    """

    def __init__(self, suite: Suite):
        self._plugins = Plugins()
        self._encodings = {text: self._parse("encodings", text) for text in suite.encodings}
        self._tasks = {grid.task: self._parse("tasks", grid.task) for grid in suite.accuracy}

    def source(self, metric: str) -> str:
        """The metric that is measured for this one."""
        return str(self._plugins["metrics"][metric].facts.get("derived_from") or metric)

    def cost(self, encoding: str, metric: str, backend: str, scope: str) -> tuple[str, ...]:
        model = (f"model@{MODEL_VERSION}",) if scope == "model" else ()
        return (*self._encodings[encoding], self._of("metrics", metric), self._of("backends", backend), *model)

    def accuracy(self, encoding: str, task: str, backend: str) -> tuple[str, ...]:
        shared = (f"model@{MODEL_VERSION}", f"recipe@{RECIPE_VERSION}")
        named = (self._of("metrics", "accuracy"), self._of("backends", backend))
        return (*self._encodings[encoding], *named, *self._tasks[task], *shared)

    def _parse(self, kind: str, text: str) -> tuple[str, ...]:
        return Expression.parse(text, self._plugins[kind]).versions()

    def _of(self, kind: str, name: str) -> str:
        return f"{name}@{self._plugins[kind][name].version}"
