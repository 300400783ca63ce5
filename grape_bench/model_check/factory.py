"""The user's factory: found by its word, and called."""

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from grape_bench.errors import UserError, allowed


def made(word: str) -> Any:
    """What the factory of a word returns. This runs the user's code.

    Args:
        word: `pkg.module:factory`, or `path/file.py:factory`.

    Raises:
        UserError: it is no such word, or the code is not found or fails; the message says where.
    """
    place, _, name = word.rpartition(":")
    if not place or not name.isidentifier():
        raise UserError(f"--model {word}: write pkg.module:factory or path/file.py:factory, such as mine.py:model")
    module = _tried(word, lambda: _module(place))
    factory = getattr(module, name, None)
    if factory is None:
        known = [one for one, value in vars(module).items() if callable(value) and not one.startswith("_")]
        raise UserError(f"--model {word}: {place} has no {name!r}.{allowed(name, known)}")
    if not callable(factory):
        raise UserError(f"--model {word}: {name} is a {type(factory).__name__}; it must be callable without arguments")
    return _tried(word, factory)


def _module(place: str) -> ModuleType:
    if not place.endswith(".py"):
        sys.path[:0] = [] if os.getcwd() in sys.path else [os.getcwd()]  # as `python -m` would find it
        return importlib.import_module(place)
    path = Path(place).resolve()
    if not path.is_file():
        raise UserError(f"--model {place}: there is no such file")
    sys.path[:0] = [] if str(path.parent) in sys.path else [str(path.parent)]  # for what stands beside it
    name = f"grape_bench_model_{path.stem}"  # by its own name, such as copy.py, it would be a module that is loaded
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _tried(word: str, code: Callable[[], Any]) -> Any:
    try:
        return code()
    except UserError:
        raise
    except (Exception, SystemExit) as error:  # a stranger's code may do anything
        frames = [one for one in traceback.extract_tb(error.__traceback__) if one.filename != __file__]
        frames = [one for one in frames if not one.filename.startswith("<frozen") and "importlib" not in one.filename]
        where = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
        raise UserError(f"--model {word}: it fails{where}: {type(error).__name__}: {error}") from error
