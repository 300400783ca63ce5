"""Imports go one way, and what needs no torch loads none: read with ast, nothing is run."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import grape_bench
from grape_bench.registry import KINDS

PACKAGE = Path(grape_bench.__file__).parent
# From the top down; a module imports from below its own layer alone. What is not named here is below all of these.
LAYERS = (
    {"__main__"},
    {"cli"},
    {"arguments"},
    {"commands"},
    {"history"},
    {"asv_benchmarks"},
    {"runner", "verify"},
    {"loop"},
    {"ledger"},
    {"progress"},
    {"executors"},
    {"worker"},
    {"time_block"},
    {"attempt"},
    {"gate", "laws", "metrics"},
    {"probe", "residual"},
    {"training"},
    {"trainer"},
    {"gpu"},
    {"rounds"},
    {"checkpoint", "evaluation", "graphs", "optimizer", "timing", "memory", "operation"},
    {"model"},
    {"attention"},
    {"encodings", "tasks", "backends"},
    {"bias"},
    {"compiler"},
    {"model_check"},
)
DATA = {"bias", "cell", "errors", "record"}
MEASURING = {"attention", "memory", "model", "operation", "timing"}
ALLOWED = {
    "encodings": DATA,
    "tasks": DATA,
    "backends": DATA | {"compiler"},
    "metrics": DATA | MEASURING | {"backends", "encodings", "tasks"},
    "executors": DATA | {"environment", "origin", "placing", "resources", "timing", "worker"},
    "renderers": {"errors", "legend", "palette", "plots", "printable", "svg", "table"},
}
TORCH_FREE = [
    "agenda", "arguments", "bundle", "catalogue", "cell", "claim_costs", "claim_trainings", "claims", "cli",
    "compare", "environment", "errors", "evidence", "export", "expression", "extrapolation", "finding", "flops",
    "forecast", "gpu_reading", "groups", "history.regressions", "interruption", "leaderboard", "lint.diagnosis",
    "listing", "model_check.rules", "nvml", "pareto", "placing", "ranking", "record", "registry", "report",
    "resources", "schedule", "score", "store", "suite", "suite_files", "suite_limits", "suite_size", "validate",
]  # fmt: skip
MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.parent != PACKAGE or path.stem != "__init__"
}
PLUGINS = [name for name in MODULES if name.split(".")[0] in KINDS and "." in name and "._" not in name]


def imports(name: str, *, inside_functions: bool = True) -> Iterator[str]:
    """Full names of what a module imports; type checkers' imports are passed over."""
    for node in statements(ast.parse(MODULES[name].read_text(encoding="utf-8")), inside_functions):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name}: relative import"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole.removeprefix("grape_bench.") in MODULES else str(node.module)


def statements(node: ast.AST, inside_functions: bool) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if inside_functions or not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
            yield from statements(child, inside_functions)


def own(names: Iterator[str]) -> list[str]:
    return [one.removeprefix("grape_bench.") for one in names if one.startswith("grape_bench.")]


def layer(name: str) -> int:
    top = name.split(".")[0]
    return next((index for index, names in enumerate(LAYERS) if top in names), len(LAYERS))


@pytest.mark.parametrize("name", MODULES)
def test_imports_go_one_way(name: str) -> None:
    top = name.split(".")[0]
    others = [one for one in own(imports(name)) if one.split(".")[0] != top]
    assert [one for one in others if layer(one) <= layer(name) < len(LAYERS)] == []
    if layer(name) == len(LAYERS):
        assert [one for one in others if layer(one) < len(LAYERS)] == []


@pytest.mark.parametrize("name", MODULES)
def test_a_module_that_needs_torch_has_its_layer(name: str) -> None:
    needs = any(one.split(".")[0] == "torch" for one in imports(name, inside_functions=False))
    assert not needs or layer(name) < len(LAYERS)


@pytest.mark.parametrize("name", TORCH_FREE + [one for one in PLUGINS if one.startswith("renderers.")])
def test_what_needs_no_torch_loads_none(name: str) -> None:
    """Not even through what it imports."""
    seen, left = set(), [name]
    while left:
        one = left.pop()
        seen.add(one)
        found = list(imports(one, inside_functions=False))
        assert not [word for word in found if word.split(".")[0] == "torch"], f"{one} imports torch"
        # a module brings its package along
        brought = {part for word in own(iter(found)) for part in (word, word.rpartition(".")[0]) if part in MODULES}
        left += brought - seen


@pytest.mark.parametrize("name", PLUGINS)
def test_a_plugin_imports_its_contract_and_never_another_plugin(name: str) -> None:
    kind = name.split(".")[0]
    for one in own(imports(name)):
        private = one.startswith(f"{kind}._")
        assert one == kind or private or one in ALLOWED[kind], f"{name} imports {one}"


def test_the_clock_is_read_in_one_place() -> None:
    assert {name for name in MODULES if "time" in imports(name)} == {"timing"}


def test_events_of_a_device_are_recorded_in_one_place() -> None:
    makers = {name for name, path in MODULES.items() if "cuda.Event(" in path.read_text(encoding="utf-8")}
    assert makers == {"gpu.stream"}
