"""Suites at tiny sizes, for a rehearsal on a CPU: the same encodings, metrics, backends and number formats."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from grape_bench.suite import load

LENGTHS, HEADS, HEAD_DIM = (32, 48), 2, 16
TRAINING = {"steps": 16, "batch": 4, "warmup": 4, "test_examples": 8}
Tree = dict[str, Any]


def main(folder: Path, suites: Iterable[Path]) -> None:
    """Write each suite into the folder, under its own name. JSON is YAML, so a suite may be written as such."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in suites:
        tree = load(path).model_dump(mode="json", exclude_defaults=True, exclude={"name"})
        (folder / path.name).write_text(json.dumps(shrunk(tree), indent=1), encoding="utf-8")


def shrunk(suite: Tree) -> Tree:
    """One seed, one process, two lengths; claims are left out, since they speak of lengths that are not there."""
    kept = {key: value for key, value in suite.items() if key != "claims"}
    return {
        **kept,
        "processes": 1,
        "seeds": suite.get("seeds", [0])[:1],
        "cost": [_cost(grid) for grid in suite.get("cost", [])],
        "accuracy": [_accuracy(grid) for grid in suite.get("accuracy", [])],
    }


def _cost(grid: Tree) -> Tree:
    most = max(grid.get("heads", [8]))
    kv_heads = {None: None} | {one: HEADS if one >= most else 1 for one in grid.get("kv_heads", []) if one}
    asked = dict.fromkeys(kv_heads[one] for one in grid.get("kv_heads", [None]))
    lengths = LENGTHS[: len(grid["lengths"])]
    return {**grid, "lengths": lengths, "heads": [HEADS], "kv_heads": [*asked], "head_dim": [HEAD_DIM], "batch": [1]}


def _accuracy(grid: Tree) -> Tree:
    model = {**grid.get("model", {}), "width": HEADS * HEAD_DIM, "layers": 2, "heads": HEADS}
    training = {**grid.get("training", {}), **TRAINING, "shortest": None}
    return {**grid, "train_length": LENGTHS[0], "test_lengths": LENGTHS, "model": model, "training": training}


if __name__ == "__main__":
    main(Path(sys.argv[1]), map(Path, sys.argv[2:]))
