"""A folder is a registry: a file's name is its plug-in's name, and its options are read without running it."""

import ast
import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grape_bench.errors import UserError, allowed

KINDS = ("encodings", "tasks", "backends", "metrics", "executors", "renderers")
_TYPES = {"float": (int, float), "int": (int,), "str": (str,), "bool": (bool,), "None": (type(None),)}


@dataclass(frozen=True)
class Option:
    """One keyword-only argument of a plug-in's constructor, as its source states it."""

    name: str
    annotation: str
    default: Any = None
    required: bool = False

    def accepts(self, value: Any) -> bool:
        """Whether a literal fits the annotation; an annotation that is not understood accepts all."""
        return _fits(ast.parse(self.annotation, mode="eval").body, value)


@dataclass(frozen=True)
class Plugin:
    """What is known of a plug-in before any of its code runs.

    Args:
        facts: class attributes with literal values, those of the folder's contract included.
        wraps: its first argument after the site is another encoding.
    """

    kind: str
    name: str
    summary: str
    options: Mapping[str, Option]
    facts: Mapping[str, Any]
    wraps: bool = False

    @property
    def version(self) -> int:
        return int(self.facts.get("version", 1))

    def load(self) -> Any:
        """Import the file and return its `PLUGIN`."""
        return importlib.import_module(f"grape_bench.{self.kind}.{self.name}").PLUGIN


class Registry(Mapping[str, Plugin]):
    """The plug-ins of one folder by name.

    Args:
        kind: one of `KINDS`.

    Raises:
        UserError: on `registry[name]` for a name that is no plug-in; it names the nearest one.
    """

    def __init__(self, kind: str):
        self.kind = kind
        folder = Path(__file__).parent / kind
        self._files = {path.stem: path for path in sorted(folder.glob("*.py")) if not path.stem.startswith("_")}
        self._contract = _classes(_tree(folder / "__init__.py"))
        self._plugins: dict[str, Plugin] = {}  # those that were asked for

    def __getitem__(self, name: str) -> Plugin:
        if name not in self._files:
            raise UserError(f"there is no {self.kind.rstrip('s')} named {name!r}.{allowed(name, self._files)}")
        if name not in self._plugins:
            self._plugins[name] = _read(self.kind, self._files[name], self._contract)
        return self._plugins[name]

    def __contains__(self, name: object) -> bool:
        return name in self._files

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


def _tree(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except SyntaxError as error:
        raise UserError(f"{path}:{error.lineno}: this plug-in is not Python: {error.msg}") from None


def _classes(tree: ast.Module) -> dict[str, ast.ClassDef]:
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _read(kind: str, path: Path, contract: dict[str, ast.ClassDef]) -> Plugin:
    tree = _tree(path)
    known = contract | _classes(tree)
    target = _plugin(tree)
    if target not in known:
        raise UserError(f"{path}: its last line must be `PLUGIN = Class`, naming a class of the file")
    lineage = list(_lineage(target, known))
    facts: dict[str, Any] = {}
    for node in reversed(lineage):
        facts |= _facts(node)
    functions = (item for node in lineage for item in node.body if isinstance(item, ast.FunctionDef))
    init = next((function for function in functions if function.name == "__init__"), None)
    doc = ast.get_docstring(known[target]) or ""
    return Plugin(
        kind=kind,
        name=path.stem,
        summary=doc.split("\n\n")[0].replace("\n", " "),
        options=_options(init, path) if init else {},
        facts=facts,
        wraps=bool(init and any(arg.arg == "inner" for arg in init.args.args)),
    )


def _plugin(tree: ast.Module) -> str:
    values = [node.value for node in tree.body if isinstance(node, ast.Assign) and _name(node.targets[0]) == "PLUGIN"]
    return _name(values[-1]) if values else ""


def _lineage(name: str, known: dict[str, ast.ClassDef]) -> Iterator[ast.ClassDef]:
    if name in known:
        yield known[name]
        for base in known[name].bases:
            yield from _lineage(_name(base), known)


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _facts(node: ast.ClassDef) -> dict[str, Any]:
    facts = {}
    for item in node.body:
        target = item.targets[0] if isinstance(item, ast.Assign) else getattr(item, "target", None)
        value = getattr(item, "value", None)
        if isinstance(target, ast.Name) and value is not None:
            try:
                facts[target.id] = ast.literal_eval(value)
            except (ValueError, TypeError):  # a computed attribute is no declared fact
                continue
    return facts


def _options(init: ast.FunctionDef, path: Path) -> dict[str, Option]:
    options = {}
    for arg, default in zip(init.args.kwonlyargs, init.args.kw_defaults, strict=True):
        annotation = ast.unparse(arg.annotation) if arg.annotation else "object"
        try:
            value = ast.literal_eval(default) if default else None
        except (ValueError, TypeError):
            raise UserError(f"{path}:{arg.lineno}: the default of {arg.arg!r} must be a literal") from None
        options[arg.arg] = Option(arg.arg, annotation, value, required=default is None)
    return options


def _fits(annotation: ast.expr, value: Any) -> bool:
    match annotation:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _fits(left, value) or _fits(right, value)
        case ast.Constant(value=None):
            return value is None
        case ast.Name(id=name) if name in _TYPES:
            return isinstance(value, _TYPES[name]) and (name == "bool" or not isinstance(value, bool))
        case ast.Subscript(value=ast.Name(id="Literal"), slice=choices):
            nodes = choices.elts if isinstance(choices, ast.Tuple) else [choices]
            return any(type(one) is type(value) and one == value for one in map(ast.literal_eval, nodes))
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=[item, ast.Constant(value=end)])) if (
            end is ...
        ):
            return isinstance(value, tuple | list) and all(_fits(item, one) for one in value)
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=items)):
            fits = isinstance(value, tuple | list) and len(value) == len(items)
            return fits and all(map(_fits, items, value))
        case _:
            return True
