"""Torch leaves its fused kernels in silence; what rides on them here does not."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from grape_bench.backends import Backend, Mask, load
from grape_bench.backends._fused import fused, run
from grape_bench.bias import Bias, LowRank, Sum, Toeplitz
from grape_bench.errors import Unsupported

H, T, D = 2, 9, 8
FLASH = "_scaled_dot_product_flash_attention_for_cpu"


class Kernels(TorchDispatchMode):
    """Names of what torch runs within."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def draw(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def qkv(dtype: torch.dtype = torch.float32) -> list[Tensor]:
    return [draw(seed, 1, H, T, D).to(dtype).requires_grad_() for seed in range(3)]


def distances(*, learned: bool = False) -> Toeplitz:
    level, at = torch.tensor([0.3, 0.01]).requires_grad_(learned), torch.arange(T)
    return Toeplitz(lambda far, m: -m.reshape(-1, *[1] * far.dim()) * far.abs(), [level], at, at, uniform=True)


def finite() -> LowRank:
    return LowRank(draw(5, 1, H, T, 3), draw(6, 1, 1, T, 3))


# What torch does today without a word: were it to change, the guards here could go.
LEAVES = {
    "a mask of three dimensions": {"attn_mask": torch.zeros(H, T, T)},
    "a mask with a gradient": {"attn_mask": torch.zeros(1, H, T, T, requires_grad=True)},
    "values narrower than keys": {"narrow": True},
}


@pytest.mark.filterwarnings("ignore")  # torch says why no kernel fits
@pytest.mark.parametrize("case", LEAVES)
def test_torch_builds_the_matrix_in_silence_and_we_refuse_or_mend(case: str) -> None:
    options = dict(LEAVES[case])
    q, k, v = qkv()
    v = v[..., :5] if options.pop("narrow", False) else v
    with Kernels() as alone:
        expected = F.scaled_dot_product_attention(q, k, v, **options)
    assert FLASH not in alone.names
    if options:
        with pytest.raises(Unsupported, match="no fused kernel"):
            run(q, k, v, D**-0.5, **options)
    else:
        with Kernels() as ours:
            out = fused(q, k, v, Mask(), D**-0.5)
        assert FLASH in ours.names
        torch.testing.assert_close(out, expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("heads", [H, 1])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["lifted", "reversed", "both"])
def test_the_fused_kernel_runs_forward_and_backward(dtype: torch.dtype, heads: int, causal: bool, kind: str) -> None:
    backend: Backend = load("reversed" if kind == "reversed" else "lifted")
    bias: Bias = {"lifted": finite(), "reversed": distances(), "both": Sum([finite(), distances()])}[kind]
    q, k, v = qkv(dtype)
    with Kernels() as kernels:
        out = backend.attend(q, k[:, :heads], v[:, :heads], bias, Mask(causal))
        torch.autograd.grad(out.sum(), (q, k, v))
    assert kernels.names.count(FLASH) == 1
    assert f"{FLASH}_backward" in kernels.names
    assert not {"_softmax", "bmm", "baddbmm"} & set(kernels.names)


def test_autocast_rounds_no_band() -> None:
    """Scaled dot product attention is on autocast's list, and would take its mask down to bfloat16 with the queries."""
    q, k, v = (one.detach().bfloat16() for one in qkv())
    level, at = torch.tensor([100.7, 33.3]), torch.arange(T)
    steep = Toeplitz(lambda far, m: m[:, None] * far.abs(), [level], at, at, uniform=True)
    out = load("reversed").attend(q, k, v, steep, Mask())
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(load("reversed").attend(q, k, v, steep, Mask()), out, rtol=0, atol=0)


def test_a_band_that_learns_is_refused_and_not_detached() -> None:
    with pytest.raises(Unsupported, match="learns"):
        load("reversed").attend(*qkv(), distances(learned=True), Mask())
    with torch.no_grad():
        load("reversed").attend(*qkv(), distances(learned=True), Mask())


@pytest.mark.parametrize(("bias", "reason"), [(None, "no bias"), (finite(), "no function of the distance")])
def test_reversed_takes_distances_alone(bias: Bias | None, reason: str) -> None:
    with pytest.raises(Unsupported, match=reason):
        load("reversed").attend(*qkv(), bias, Mask())


def test_positions_with_gaps_are_no_band() -> None:
    at = torch.tensor([0, 1, 2, 3, 4, 5, 6, 7, 100])
    gaps = Toeplitz(lambda far, m: m[:, None, None] * far, [torch.ones(H)], at, at, uniform=False)
    with pytest.raises(Unsupported, match="steps of one"):
        load("reversed").attend(*qkv(), gaps, Mask())


def test_a_document_in_several_pieces_is_refused() -> None:
    documents = torch.tensor([[0, 0, 1, 1, 1, 0, 0, 2, 2]])
    with pytest.raises(Unsupported, match="several pieces"):
        load("lifted").attend(*qkv(), finite(), Mask(documents=documents))
