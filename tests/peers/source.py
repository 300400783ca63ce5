"""Parts of peers whose packages ask for GPU kernels or a trainer when they are imported."""

import ast
import math
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Optional

import torch
from einops import rearrange, repeat
from torch import nn
from torch.nn import functional as F


def definitions(module: str, *names: str) -> SimpleNamespace:
    """Run some functions and classes of an installed module, as they stand in its file, and nothing else of it.

    Args:
        module: its full name, as `litgpt.model`; its packages are not imported.
        names: what to run, with what it calls in the same file.
    """
    package, *parts = module.split(".")
    spec = find_spec(package)
    assert spec is not None, f"{package} is not installed; see requirements.txt"
    assert spec.submodule_search_locations is not None
    path = Path(spec.submodule_search_locations[0]).joinpath(*parts).with_suffix(".py")
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    kept = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in names]
    assert len(kept) == len(names), f"{module} has only {[node.name for node in kept]} of {names}"
    found: dict[str, Any] = {"Any": Any, "F": F, "Optional": Optional, "math": math, "nn": nn, "torch": torch}
    found |= {"rearrange": rearrange, "repeat": repeat}
    exec(compile(ast.Module(kept, type_ignores=[]), str(path), "exec"), found)
    return SimpleNamespace(**{name: found[name] for name in names})
