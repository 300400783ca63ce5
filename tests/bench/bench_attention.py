"""Applying each encoding, and each backend, at a small size; new files of these folders are found by themselves."""

import pytest

from grape_bench.cell import CostCell
from grape_bench.errors import Unsupported
from grape_bench.registry import Registry

ROUNDS = 30  # these are short
ENCODINGS = [plugin.name for plugin in Registry("encodings").values() if not plugin.wraps]


def _forward(**more):
    cell = CostCell(metric="forward_ms", length=64, heads=4, head_dim=16, causal=True, **more)
    try:
        operation = Registry("metrics")["forward_ms"].load()().prepare(cell, "cpu")
        operation()
    except Unsupported as reason:
        pytest.skip(str(reason))
    return operation


@pytest.mark.parametrize("name", ENCODINGS)
def bench_encoding(guard, numbers, name):
    guard(_forward(encoding=name, backend="eager"), numbers, rounds=ROUNDS)


@pytest.mark.parametrize("name", Registry("backends"))
def bench_backend(guard, numbers, name):
    guard(_forward(encoding="rope + alibi", backend=name), numbers, rounds=ROUNDS)
