"""A folder is a registry: a file's name is its plug-in's name, and its options are read without running it."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from grape_bench import source
from grape_bench.errors import UserError, allowed
from grape_bench.origin import OPEN, Origin, digest, installed, named
from grape_bench.source import Classes, Option

__all__ = ["KINDS", "Option", "Plugin", "Registry"]

KINDS = ("encodings", "tasks", "backends", "metrics", "executors", "renderers")


@dataclass(frozen=True)
class Plugin:
    """What is known of a plug-in before any of its code runs.

    Args:
        summary, source: the first paragraph of its docstring, and the one that says where the idea is from.
        facts: class attributes with literal values, those of the folder's contract included.
        wraps: its first argument after the site is another encoding.
        methods: names of what its classes define in place of the contract's.
        origin: where it is written; digest: of that text, for a plug-in from outside.
    """

    kind: str
    name: str
    summary: str
    options: Mapping[str, Option]
    facts: Mapping[str, Any]
    wraps: bool = False
    methods: frozenset[str] = frozenset()
    origin: Origin | None = None
    digest: str = ""
    source: str = ""

    @property
    def version(self) -> str:
        """The number that its source declares, which nobody outside owes us: there it comes with the text's digest."""
        number = str(self.facts.get("version", 1))
        return f"{number}+{self.digest}" if self.digest else number

    def load(self) -> Any:
        """Import the file and return its class.

        Raises:
            UserError: it is from outside, and fails.
        """
        assert self.origin is not None
        return self.origin.load()


class Registry(Mapping[str, Plugin]):
    """The plug-ins of one kind by name: those of our folder, named on the command line, or of installed packages.

    Args:
        kind: one of `KINDS`.

    Raises:
        UserError: two plug-ins have one name; or on `registry[name]`, there is no such plug-in, and the message names
            the nearest one, or its source breaks the contract.
    """

    def __init__(self, kind: str):
        self.kind = kind
        self._folder = Path(__file__).parent / kind
        self._contract = source.classes(source.tree((self._folder / "__init__.py").read_bytes(), str(self._folder)))
        paths = [path for path in sorted(self._folder.glob("*.py")) if not path.stem.startswith("_")]
        ours = [Origin(kind, path.stem, str(path), f"grape_bench.{kind}.{path.stem}") for path in paths]
        extra = [origin for origin in named() if origin.kind == kind]
        self.named = tuple(origin.name for origin in extra)  # on the command line
        self._origins = _by_name([*ours, *extra])
        self._plugins: dict[str, Plugin] = {}  # those that were asked for

    @cached_property
    def _all(self) -> dict[str, Origin]:
        # Looked up last: reading what is installed takes longer than all else here.
        return _by_name([*self._origins.values(), *installed(self.kind)])

    def __getitem__(self, name: str) -> Plugin:
        if name not in self:
            raise UserError(f"there is no {self.kind.rstrip('s')} named {name!r}.{allowed(name, self._all)}")
        if name not in self._plugins:
            self._plugins[name] = self._read(self._origins.get(name) or self._all[name])
        return self._plugins[name]

    def __contains__(self, name: object) -> bool:
        return name in self._origins or name in self._all

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def _read(self, origin: Origin) -> Plugin:
        text, place = origin.source(), origin.place
        tree = source.tree(text, place)
        known = source.scope(tree, self._contract, self._folder)
        target = source.target(tree) if origin.by_convention else origin.target
        if target not in known:
            raise UserError(_missing(origin, source.classes(tree)))
        lineage = list(source.lineage(target, known))
        init = source.constructor(lineage)
        if not origin.ours:
            self._check(lineage, init, place)
        return Plugin(
            kind=self.kind,
            name=origin.name,
            summary=source.paragraph(lineage[0]),
            options=source.options(init, place) if init else {},
            facts=source.facts(lineage),
            wraps=bool(init and any(arg.arg == "inner" for arg in init.args.args)),
            methods=source.methods(node for node in lineage if node not in self._contract.values()),
            origin=origin,
            digest="" if origin.ours else digest(text),
            source=source.paragraph(lineage[0], "Source: "),
        )

    def _check(self, lineage: list[ast.ClassDef], init: ast.FunctionDef | None, place: str) -> None:
        """Refuse a class from outside that could not be made as ours are."""
        base, first = OPEN[self.kind], lineage[0]
        if self._contract[base] not in lineage:
            raise UserError(
                f"{place}:{first.lineno}: {first.name} is no {base}; write `class {first.name}({base})` after "
                f"`from grape_bench.{self.kind} import {base}`"
            )
        if not _makes(self.kind, init):
            usual = {"encodings": "self, site, *, option: type = default", "backends": "self"}[self.kind]
            line = init.lineno if init else first.lineno
            raise UserError(f"{place}:{line}: the constructor of {first.name} must be `__init__({usual})`")


def _by_name(origins: Iterable[Origin]) -> dict[str, Origin]:
    found: dict[str, Origin] = {}
    for origin in origins:
        if origin.name in found:
            raise UserError(
                f"{origin.place}: there is a plug-in named {origin.name!r} among the {origin.kind} already, "
                f"in {found[origin.name].place}; give this one another name"
            )
        found[origin.name] = origin
    return found


def _missing(origin: Origin, known: Classes) -> str:
    if origin.by_convention:
        return f"{origin.place}: its last line must be `PLUGIN = Class`, naming a class of the file"
    return f"{origin.place}: it has no class {origin.target!r}.{allowed(origin.target, known) if known else ''}"


def _makes(kind: str, init: ast.FunctionDef | None) -> bool:
    """Whether a constructor takes what it is called with, and states each option by its name."""
    if init is None:
        return kind == "backends"  # torch's own, of every encoding, takes no site
    names = [arg.arg for arg in (*init.args.posonlyargs, *init.args.args)]
    if init.args.vararg or init.args.kwarg:
        return False
    if kind == "backends":
        return len(names) == 1 and all(init.args.kw_defaults)
    return len(names) == 2 or (len(names) == 3 and names[2] == "inner")
