"""Auto chooses by its table, says what it chose, and falls back on nothing."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from grape_bench.backends import Mask, load, noting
from grape_bench.backends.auto import _TABLE, choose
from grape_bench.bias import Bias, LowRank, Rowwise, Sum, Toeplitz
from grape_bench.errors import Unsupported
from grape_bench.registry import Registry

H, T = 2, 6


def rank() -> Bias:
    return LowRank(torch.ones(1, H, T, 1), torch.ones(1, 1, T, 1))


def band(*, learned: bool = False, uniform: bool = True) -> Bias:
    at = torch.arange(T)
    level = torch.ones(H).requires_grad_(learned)
    return Toeplitz(lambda far, m: m.reshape(-1, *[1] * far.dim()) * far, [level], at, at, uniform=uniform)


def rows(*, reads: bool = False) -> Bias:
    return Rowwise(lambda rows, scores, m: torch.ones(1, H, T, T)[:, :, rows] * m, [torch.ones(1)], reads_scores=reads)


CASES = [
    (None, "sdpa", "sdpa", "sdpa"),
    (rank(), "lifted", "flex", "sdpa"),
    (band(), "reversed", "flex", "sdpa"),
    (band(learned=True), "chunked", "flex", "sdpa"),
    (band(uniform=False), "chunked", "chunked", "sdpa"),
    (rows(), "chunked", "chunked", "sdpa"),
    (rows(reads=True), "chunked", "chunked", "chunked"),
    (Sum([rank(), Sum([band(), rank()])]), "lifted", "flex", "sdpa"),
    (Sum([rank(), band(learned=True)]), "chunked", "flex", "sdpa"),
    (LowRank(torch.ones(1, H, T, 65), torch.ones(1, 1, T, 65)), "lifted", "chunked", "sdpa"),
    (Sum([rank(), rows(reads=True)]), "chunked", "chunked", "chunked"),
]


def call(device: str, count: int) -> Any:
    return SimpleNamespace(device=SimpleNamespace(type=device), shape=(1, H, count, 4))


@pytest.mark.parametrize(("bias", "cpu", "cuda", "decoding"), CASES)
def test_the_table_chooses(bias: Bias | None, cpu: str, cuda: str, decoding: str) -> None:
    assert choose(bias, Mask(causal=True), call("cpu", T)) == cpu
    assert choose(bias, Mask(causal=True), call("cuda", T)) == cuda
    with torch.no_grad():
        assert choose(bias, Mask(causal=True), call("cpu", 1)) == decoding


def test_documents_without_a_bias_take_no_mask_of_all_pairs() -> None:
    assert choose(None, Mask(documents=torch.zeros(1, T)), call("cpu", T)) == "lifted"


def test_the_table_names_backends_and_ends_with_a_row_for_everything() -> None:
    assert {row.backend for row in _TABLE} <= set(Registry("backends"))
    assert not _TABLE[-1].when
    assert all(row.kinds <= _TABLE[-1].kinds for row in _TABLE)


def qkv() -> list[Tensor]:
    return [torch.randn(1, H, T, 4, generator=torch.Generator().manual_seed(seed)) for seed in range(3)]


@pytest.mark.parametrize(("bias", "name"), [(None, "sdpa"), (rank(), "lifted"), (band(), "reversed")])
def test_the_choice_is_said_and_is_what_runs(bias: Bias | None, name: str) -> None:
    with noting() as notes:
        out = load("auto").attend(*qkv(), bias, Mask(causal=True))
    assert notes == [name]
    torch.testing.assert_close(out, load(name).attend(*qkv(), bias, Mask(causal=True)), rtol=0, atol=0)


def test_what_the_chosen_backend_refuses_is_not_tried_on_another() -> None:
    pieces = Mask(documents=torch.tensor([[0, 1, 1, 0, 0, 0]]))
    with pytest.raises(Unsupported, match="several pieces"):
        load("auto").attend(*qkv(), rank(), pieces)
