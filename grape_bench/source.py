"""What a plug-in's source says of it: text that is read, and never run."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grape_bench.errors import UserError

_TYPES = {"float": (int, float), "int": (int,), "str": (str,), "bool": (bool,), "None": (type(None),)}

Classes = dict[str, ast.ClassDef]


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


def tree(text: bytes, place: str) -> ast.Module:
    """The syntax of a file.

    Raises:
        UserError: it is not Python; the message gives its line.
    """
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:  # ValueError: a NUL
        line, reason = getattr(error, "lineno", None) or 1, getattr(error, "msg", None) or error
        raise UserError(f"{place}:{line}: this plug-in is not Python: {reason}") from None


def classes(tree: ast.Module) -> Classes:
    """The classes of a file by name."""
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def scope(module: ast.Module, contract: Classes, folder: Path) -> Classes:
    """Classes that a file can name: its own, those of a folder's contract, and those of the folder's files it imports.

    Args:
        folder: of plug-ins, in the package.
    """
    known = dict(contract)
    for node in module.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            there = _classes_of(node.module, contract, folder)
            known |= there
            known |= {one.asname: there[one.name] for one in node.names if one.asname and one.name in there}
    return known | classes(module)


def _classes_of(module: str, contract: Classes, folder: Path) -> Classes:
    package, _, stem = module.rpartition(".")
    if module == f"grape_bench.{folder.name}":
        return contract
    path = folder / f"{stem}.py"
    if package != f"grape_bench.{folder.name}" or not path.is_file():
        return {}
    return scope(tree(path.read_bytes(), str(path)), contract, folder)


def target(tree: ast.Module) -> str:
    """The class that the line `PLUGIN = Class` names, empty where there is none."""
    values = [node.value for node in tree.body if isinstance(node, ast.Assign) and _name(node.targets[0]) == "PLUGIN"]
    return _name(values[-1]) if values else ""


def lineage(name: str, known: Classes) -> Iterator[ast.ClassDef]:
    """A class and what it derives from, nearest first, as far as the classes are known."""
    if name in known:
        yield known[name]
        others = {key: node for key, node in known.items() if node is not known[name]}  # a circle ends
        for base in known[name].bases:
            yield from lineage(_name(base), others)


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def paragraph(node: ast.ClassDef, start: str = "") -> str:
    """The first paragraph of a class's docstring that starts so, in one line and without that start."""
    paragraphs = (ast.get_docstring(node) or "").split("\n\n")
    found = next((one for one in paragraphs if one.startswith(start)), "")
    return " ".join(found.removeprefix(start).split())


def facts(nodes: Iterable[ast.ClassDef]) -> dict[str, Any]:
    """Class attributes with literal values; a computed one is no declared fact.

    Args:
        nodes: a lineage, nearest first.
    """
    found: dict[str, Any] = {}
    for item in (item for node in reversed(list(nodes)) for item in node.body):
        name = item.targets[0] if isinstance(item, ast.Assign) else getattr(item, "target", None)
        value = getattr(item, "value", None)
        if isinstance(name, ast.Name) and value is not None:
            found.pop(name.id, None)
            try:
                found[name.id] = ast.literal_eval(value)
            except (ValueError, TypeError):
                continue
    return found


def methods(nodes: Iterable[ast.ClassDef]) -> frozenset[str]:
    """Names of the functions that some classes define."""
    return frozenset(item.name for node in nodes for item in node.body if isinstance(item, ast.FunctionDef))


def constructor(nodes: Iterable[ast.ClassDef]) -> ast.FunctionDef | None:
    """The nearest `__init__` of a lineage."""
    functions = (item for node in nodes for item in node.body if isinstance(item, ast.FunctionDef))
    return next((function for function in functions if function.name == "__init__"), None)


def options(init: ast.FunctionDef, place: str) -> dict[str, Option]:
    """The keyword-only arguments of a constructor.

    Raises:
        UserError: a default is not a literal.
    """
    found = {}
    for arg, default in zip(init.args.kwonlyargs, init.args.kw_defaults, strict=True):
        annotation = ast.unparse(arg.annotation) if arg.annotation else "object"
        try:
            value = ast.literal_eval(default) if default else None
        except (ValueError, TypeError):
            raise UserError(f"{place}:{arg.lineno}: the default of {arg.arg!r} must be a literal") from None
        found[arg.arg] = Option(arg.arg, annotation, value, required=default is None)
    return found


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
