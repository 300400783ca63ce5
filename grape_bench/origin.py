"""Where plug-ins come from: our folders, files named on the command line, and installed packages."""

import hashlib
import importlib
import importlib.metadata
import importlib.util
import json
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from grape_bench.errors import UserError

# A process's own: what the command line named, for itself and for the workers that inherit it.
VARIABLE = "GRAPE_BENCH_PLUGINS"
OPEN = {"encodings": "Encoding", "backends": "Backend"}  # kinds that take plug-ins from outside, and what these extend
_CONVENTION = "PLUGIN"


@dataclass(frozen=True)
class Origin:
    """Where the class of a plug-in is written.

    Args:
        name: of the plug-in, in expressions.
        path: of its file, empty where it is found by its module.
        module: what is imported; empty for a file on its own, which is run by its path.
        target: what the module calls the class.
        digest: of the file as it was when a run began, empty where that does not matter.
    """

    kind: str
    name: str
    path: str = ""
    module: str = ""
    target: str = _CONVENTION
    digest: str = ""

    @property
    def ours(self) -> bool:
        return self.module.startswith("grape_bench.")

    @property
    def by_convention(self) -> bool:
        """Its file says by a line `PLUGIN = Class` which class it is."""
        return self.target == _CONVENTION

    @property
    def file(self) -> str:
        return self.path or _file(self.module)

    @property
    def place(self) -> str:
        """Its file as messages name it."""
        path, here = Path(self.file), Path.cwd()
        return str(path.relative_to(here) if path.is_relative_to(here) else path)

    def source(self) -> bytes:
        """The text of its file.

        Raises:
            UserError: it cannot be read, or it is another text than when the run began.
        """
        text = _read(self.file, self.place)
        if self.digest not in ("", digest(text)):
            raise UserError(f"{self.place} has changed since this run began; run the same command again")
        return text

    def load(self) -> Any:
        """Run its module, once in each process, and return the class.

        Raises:
            UserError: the code is not ours and fails; the message gives its line.
        """
        if self.ours:
            return getattr(importlib.import_module(self.module), self.target)
        try:
            module = importlib.import_module(self.module) if self.module else self._run()
            return getattr(module, self.target)
        except (Exception, SystemExit) as error:  # a stranger's file may do anything
            frames = [one for one in traceback.extract_tb(error.__traceback__) if one.filename == self.file]
            line = frames[-1].lineno if frames else getattr(error, "lineno", None) or 1
            raise UserError(f"{self.place}:{line}: it cannot be run: {type(error).__name__}: {error}") from error

    def _run(self) -> ModuleType:
        name = f"grape_bench_plugin_{digest(self.source())}"
        if name in sys.modules:
            return sys.modules[name]
        spec = importlib.util.spec_from_file_location(name, self.path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        return module


def digest(text: bytes) -> str:
    """What tells one version of a file from another: 8 hexadecimal digits."""
    return hashlib.sha256(text).hexdigest()[:8]


def locate(kind: str, word: str) -> Origin:
    """The plug-in that the word `FILE.py:Class` names.

    Raises:
        UserError: it is no such word, or the file cannot be read.
    """
    file, _, target = word.rpartition(":")
    if not file or not target.isidentifier():
        raise UserError(f"--{kind.rstrip('s')} {word}: write FILE.py:Class, such as mine.py:Mine")
    path = os.path.abspath(file)
    return Origin(kind, target, path, target=target, digest=digest(_read(path, file)))


def announce(origins: Iterable[Origin]) -> None:
    """Make plug-ins known to the registries of this process, in place of those announced before."""
    os.environ[VARIABLE] = json.dumps([asdict(origin) for origin in dict.fromkeys(origins)])


def named() -> tuple[Origin, ...]:
    """The plug-ins that were announced."""
    return tuple(Origin(**values) for values in json.loads(os.environ.get(VARIABLE) or "[]"))


def installed(kind: str) -> Iterator[Origin]:
    """What installed packages offer as entry points of the group `grape_bench.<kind>`; imports none of them."""
    if kind in OPEN:
        for point in importlib.metadata.entry_points(group=f"grape_bench.{kind}"):
            yield Origin(kind, point.name, module=point.module, target=point.attr or _CONVENTION)


def _file(module: str) -> str:
    """The file of a module. Only its topmost package is asked for, since a spec of what is inside imports all above."""
    top, *inside = module.split(".")
    spec = importlib.util.find_spec(top)
    if spec and not inside:
        return spec.origin or module
    for folder in (spec.submodule_search_locations if spec else None) or ():
        stem = Path(folder, *inside)
        for path in (stem.with_suffix(".py"), stem / "__init__.py"):
            if path.is_file():
                return str(path)
    return module


def _read(path: str, place: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise UserError(f"{place} cannot be read: {getattr(error, 'strerror', None) or error}") from None
