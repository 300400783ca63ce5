"""What flex refuses, which needs no compiling; what it computes is in tests/flex.

Shapes: H heads, T queries, S keys.
"""

import pytest
import torch
from torch import Tensor

from grape_bench.backends import Mask, load
from grape_bench.bias import Bias, LowRank, Rowwise, Sum, Toeplitz
from grape_bench.errors import Unsupported

H, T = 2, 6


def qkv(dtype: torch.dtype = torch.float32) -> list[Tensor]:
    return [torch.randn(1, H, T, 4, generator=torch.Generator().manual_seed(seed)).to(dtype) for seed in range(3)]


def band(*, uniform: bool = True, learned: bool = False) -> Bias:
    at = torch.arange(T)
    return Toeplitz(lambda far, m: m * far, [torch.ones(H, 1, 1).requires_grad_(learned)], at, at, uniform=uniform)


def rows(*, reads: bool = False) -> Bias:
    return Rowwise(lambda rows, scores, m: m[:, :, rows], [torch.ones(1, H, T, T)], reads_scores=reads)


def rank(channels: int) -> Bias:
    return LowRank(torch.ones(1, H, T, channels), torch.ones(1, 1, T, channels))


@pytest.mark.parametrize(
    ("bias", "reason"),
    [
        (rows(), "one score at a time"),
        (rows(reads=True), "one score at a time"),
        (band(uniform=False), "steps of one"),
        (Sum([rank(2), Sum([rank(3), rows()])]), "one score at a time"),
        (rank(65), "65 channels"),
    ],
)
def test_what_cannot_be_told_from_one_score_is_a_skip(bias: Bias, reason: str) -> None:
    with pytest.raises(Unsupported, match=reason):
        load("flex").attend(*qkv(), bias, Mask(causal=True))


def test_gradients_on_a_cpu_are_a_skip() -> None:
    for index in range(3):
        given = qkv()
        given[index].requires_grad_()
        with pytest.raises(Unsupported, match="no gradients on a CPU"):
            load("flex").attend(*given, None, Mask(causal=True))
    with pytest.raises(Unsupported, match="no gradients on a CPU"):
        load("flex").attend(*qkv(), Sum([rank(1), band(learned=True)]), Mask(causal=True))


def test_float64_is_a_skip() -> None:
    with pytest.raises(Unsupported, match="float64"):
        load("flex").attend(*qkv(torch.float64), None, Mask())


def test_no_compiler_is_a_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/nowhere/g++")
    with pytest.raises(Unsupported, match=r"C\+\+ compiler"):
        load("flex").attend(*qkv(), None, Mask())


@pytest.mark.parametrize("bias", [None, band(), rank(2)])
def test_torch_cannot_run_it_uncompiled_in_silence(bias: Bias | None) -> None:
    """As it does past its limit of recompilations, or where compiling is switched off."""
    with torch.compiler.set_stance("force_eager"), pytest.raises(Unsupported, match="uncompiled"):
        load("flex").attend(*qkv(), bias, Mask(causal=True))
