"""Peers stay in this folder, and leave torch as it is."""

import ast
import re
from pathlib import Path

import torch

HOME = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
PEERS = {"attn_gym", "fla", "litgpt", "rotary_embedding_torch", "torchscale", "torchtune", "transformers"}
PEERS |= {"einops", "einx", "x_transformers"}


def test_torch_is_the_one_of_the_constraints() -> None:
    assert torch.__version__.partition("+")[0] == pins(HOME / "constraints.txt")["torch"]
    assert not {"torch", "triton"} & pins(HERE / "requirements.txt").keys()


def pins(path: Path) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==(\S+)$", path.read_text(encoding="utf-8"), re.MULTILINE))


def test_nothing_outside_this_folder_needs_a_peer_to_be_imported() -> None:
    """A backend may still reach for a kernel when it is called."""
    found = []
    for path in (*(HOME / "grape_bench").rglob("*.py"), *(HOME / "tests").rglob("*.py")):
        if HERE not in path.parents:
            found += [f"{path}: {name}" for name in imported(path) if name.partition(".")[0] in PEERS]
    assert found == []


def imported(path: Path) -> list[str]:
    """What a module imports when it is itself imported."""
    nodes = ast.parse(path.read_text(encoding="utf-8")).body
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    return names + [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
