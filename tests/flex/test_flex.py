"""Flex compiled: minutes of compiling, so `tox -e flex` runs it and the default run does not.

Shapes: B batch, H heads, T queries, S keys, D head channels.
"""

import os
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._dynamo.testing import CompileCounterWithBackend
from torch.utils._python_dispatch import TorchDispatchMode

from grape_bench import gate
from grape_bench.backends import Mask, flex, load
from grape_bench.bias import Bias, LowRank, Sum, Toeplitz
from grape_bench.cell import CostCell
from grape_bench.errors import Unsupported

pytestmark = [
    pytest.mark.skipif("GRAPE_BENCH_FLEX" not in os.environ, reason="compiled, so tox -e flex runs it"),
    pytest.mark.skipif(" " in torch.__file__, reason="torch.compile cannot link where the path of torch has a space"),
]

B, H, D = 2, 4, 16
ALLOWED = {torch.float32: 2e-6, torch.bfloat16: 5e-3, torch.float16: 1e-3}  # of the largest output


def draw(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def band(T: int, S: int, seed: int = 1) -> Bias:
    kernel = lambda far, table: table[:, far.clamp(-40, 40) + 40]  # noqa: E731
    return Toeplitz(kernel, [draw(seed, H, 81)], torch.arange(S - T, S), torch.arange(S), uniform=True)


def gates(T: int, S: int) -> Bias:
    return LowRank(draw(2, 1, H, T, 3), draw(3, B, 2, S, 3), draw(4, 1, H, T, 1))


def total(T: int, S: int) -> Bias:
    return Sum([band(T, S), Sum([gates(T, S), band(T, S, 5)])])


def keys(S: int) -> Tensor:
    """The first sequence has padding on the left, the second is nothing else."""
    return torch.arange(S) >= torch.tensor([[min(3, S - 1)], [S]])


def documents(S: int) -> Tensor:
    return torch.arange(S).expand(B, S) // 50


MASKS: dict[str, Callable[[int], Mask]] = {
    "all": lambda S: Mask(),
    "causal": lambda S: Mask(causal=True),
    "padding": lambda S: Mask(causal=True, keys=keys(S)),
    "documents": lambda S: Mask(documents=documents(S)),
    "all of them": lambda S: Mask(True, keys(S), documents(S)),
}


def qkv(T: int, S: int, dtype: torch.dtype, kv_heads: int = 2) -> list[Tensor]:
    sizes = ((H, T), (kv_heads, S), (kv_heads, S))
    return [draw(6 + n, B, heads, rows, D).to(dtype) for n, (heads, rows) in enumerate(sizes)]


def error(given: list[Tensor], bias: Bias | None, mask: Mask) -> float:
    """Largest difference from eager in float64, of its largest output."""
    wide = bias.with_leaves([leaf.double() for leaf in bias.leaves()]) if bias else None
    exact = load("eager").attend(*(one.double() for one in given), wide, mask)
    got = load("flex").attend(*given, bias, mask)
    assert got.dtype == given[0].dtype
    return ((got.double() - exact).abs().max() / exact.abs().max()).item()


@pytest.mark.parametrize("maker", [None, band, gates, total])
@pytest.mark.parametrize("dtype", ALLOWED)
def test_outputs_are_those_of_eager(maker: Callable[[int, int], Bias] | None, dtype: torch.dtype) -> None:
    bias = maker(200, 200) if maker else None
    assert error(qkv(200, 200, dtype), bias, Mask(causal=True)) <= ALLOWED[dtype]


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(("T", "S"), [(200, 200), (1, 200), (3, 130), (129, 257), (1, 1)])
def test_masks_are_aligned_at_the_bottom_right(mask: str, T: int, S: int) -> None:
    assert error(qkv(T, S, torch.float32), band(T, S), MASKS[mask](S)) <= 2e-6


@pytest.mark.parametrize("kv_heads", [1, 4])
def test_queries_share_keys(kv_heads: int) -> None:
    given = qkv(64, 64, torch.float32, kv_heads)
    assert error(given, LowRank(draw(2, 1, H, 64, 2), draw(3, 1, kv_heads, 64, 2)), Mask(causal=True)) <= 2e-6


def compilations(biases: list[Bias]) -> int:
    made = load("flex")
    counter = CompileCounterWithBackend("inductor")
    made._kernel = torch.compile(flex._compiled_only, fullgraph=True, dynamic=False, backend=counter)  # type: ignore[attr-defined]
    for bias in biases:
        made.attend(*qkv(64, 64, torch.float32), bias, Mask(causal=True))
    return counter.frame_count


def test_other_numbers_compile_nothing() -> None:
    """Slopes that were captured as Python floats would, once for each value."""
    torch._dynamo.reset()
    ones = torch.ones(1, H, 64, 1)
    assert (
        compilations([LowRank(ones * slope, torch.arange(64.0)[None, None, :, None]) for slope in (0.5, 0.25, 0.1)])
        == 1
    )
    assert compilations([band(64, 64, seed) for seed in range(3)]) == 1


def test_nine_shapes_stay_compiled_and_beyond_the_limit_it_is_a_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch's own limit is 8, and past it the whole matrix would be built in silence."""
    torch._dynamo.reset()
    for T in range(20, 29):
        assert error(qkv(T, T, torch.float32), None, Mask()) <= 2e-6
    monkeypatch.setattr(flex, "_RECOMPILATIONS", 9)
    with pytest.raises(Unsupported, match="uncompiled"):
        error(qkv(30, 30, torch.float32), None, Mask())
    with pytest.raises(Unsupported, match="uncompiled"):  # nor does the refusal itself leave a way
        error(qkv(30, 30, torch.float32), None, Mask())
    torch._dynamo.reset()


class Largest(TorchDispatchMode):
    """The most numbers that any tensor made outside of compiled code has."""

    numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for one in out if isinstance(out, tuple | list) else [out]:
            if isinstance(one, Tensor):
                self.numbers = max(self.numbers, one.numel())
        return out


def test_neither_the_mask_nor_the_bias_is_a_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    made, n = load("flex"), 1024
    monkeypatch.setattr(made, "_kernel", lambda q, *_: q)  # a mode would run it uncompiled
    with Largest() as largest:
        made.attend(*qkv(n, n, torch.float32), total(n, n), Mask(True, keys(n), documents(n)))
    assert largest.numbers <= B * H * n * D


@pytest.mark.parametrize("encoding", ["rope + t5", "alibi", "fox", "rope + fourier", "grape_a"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_encodings_pass_the_gate(encoding: str, dtype: str) -> None:
    shape = {"length": 64, "heads": 4, "kv_heads": 2, "causal": True}
    cell = CostCell(metric="decode_ms", encoding=encoding, backend="flex", dtype=dtype, **shape)  # type: ignore[arg-type]
    gate.check(cell, "cpu", decodes=True, backward=False)
