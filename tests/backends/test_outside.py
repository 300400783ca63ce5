"""What kernels of other packages are handed, with stand-ins that compute what those packages document.

Shapes: B batch, H heads, T queries, S keys, D head channels.
"""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from grape_bench.backends import Backend, Mask, fla_fox, flash_alibi, load
from grape_bench.bias import Bias, LowRank, Toeplitz
from grape_bench.encodings import At, Site, build
from grape_bench.errors import Unsupported

B, H, T, D = 2, 4, 6, 8
AT = torch.arange(T)


def attention(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, scale: float | None) -> Tensor:
    """Of (B, T, H, D), causal and aligned at the bottom right, in float64."""
    q, k, v = (one.transpose(1, 2).double() for one in (q, k, v))
    k, v = (one.repeat_interleave(q.shape[1] // one.shape[1], dim=1) for one in (k, v))
    hidden = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).triu(1 + k.shape[2] - q.shape[2])
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale) + bias
    return (scores.masked_fill(hidden, float("-inf")).softmax(dim=-1) @ v).transpose(1, 2)


def flash_attn_func(
    q: Tensor, k: Tensor, v: Tensor, *, softmax_scale: float | None, causal: bool, alibi_slopes: Tensor
) -> Tensor:
    assert causal
    assert alibi_slopes.dtype == torch.float32
    far = torch.arange(q.shape[1])[:, None] + k.shape[1] - q.shape[1] - torch.arange(k.shape[1])
    return attention(q, k, v, -alibi_slopes[:, None, None].double() * far.abs(), softmax_scale).to(q.dtype)


def parallel_forgetting_attn(q: Tensor, k: Tensor, v: Tensor, g: Tensor, *, scale: float | None) -> Tensor:
    assert g.shape == q.shape[:3]
    c = g.double().cumsum(dim=1).transpose(1, 2)
    return attention(q, k, v, c[..., :, None] - c[..., None, :], scale).to(q.dtype)


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flash_alibi, "module", lambda *_: SimpleNamespace(flash_attn_func=flash_attn_func))
    forgetting = SimpleNamespace(parallel_forgetting_attn=parallel_forgetting_attn)
    monkeypatch.setattr(fla_fox, "module", lambda *_: forgetting)


def qkv(dtype: torch.dtype, rows: int = T, kv_heads: int = 2) -> list[Tensor]:
    made = [(H, rows), (kv_heads, T), (kv_heads, T)]
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(B, heads, n, D, generator=generator).to(dtype) for heads, n in made]


def bias_of(text: str, q: Tensor, k: Tensor) -> Bias:
    site = Site(H * D, H, k.shape[1], D, T, T, causal=True)
    encoding, x = build(text, site), torch.randn(B, T, H * D, generator=torch.Generator().manual_seed(1))
    encoding.reset(torch.Generator().manual_seed(2))
    at = At(x, AT[T - q.shape[2] :], AT, uniform=True)
    features, _ = encoding.state(k, at, None)
    bias = encoding.bias(q, features, at)
    assert bias is not None
    return bias.with_leaves([leaf.detach() for leaf in bias.leaves()])


@pytest.mark.parametrize("rows", [T, 1])
@pytest.mark.parametrize("kv_heads", [2, 4])
@pytest.mark.parametrize("scale", [None, 0.2])
def test_flash_is_handed_slopes(rows: int, kv_heads: int, scale: float | None) -> None:
    q, k, v = qkv(torch.float16, rows, kv_heads)
    bias = bias_of("alibi", q, k)
    got = load("flash_alibi").attend(q, k, v, bias, Mask(causal=True), scale=scale)
    exact = load("eager").attend(q.double(), k.double(), v.double(), bias, Mask(causal=True), scale=scale)
    torch.testing.assert_close(got.double(), exact, rtol=0, atol=2e-3)


@pytest.mark.parametrize("encoding", ["fox", "fox(start=5.0)", "alibi"])
@pytest.mark.parametrize("kv_heads", [2, 4])
def test_fla_is_handed_log_gates(encoding: str, kv_heads: int) -> None:
    q, k, v = qkv(torch.float32, kv_heads=kv_heads)
    bias = bias_of(encoding, q, k)
    got = load("fla_fox").attend(q, k, v, bias, Mask(causal=True))
    exact = load("eager").attend(q.double(), k.double(), v.double(), bias, Mask(causal=True))
    torch.testing.assert_close(got.double(), exact, rtol=0, atol=1e-5)


def test_gates_get_their_gradients_through_fla() -> None:
    q, k, v = qkv(torch.float64)
    total = F.logsigmoid(torch.randn(B, 2, T, 1, generator=torch.Generator().manual_seed(3)).double())
    total.requires_grad_()
    bias = LowRank(torch.ones(1, H, T, 1).double(), -total.cumsum(dim=2))
    got, exact = (
        torch.autograd.grad(load(name).attend(q, k, v, bias, Mask(causal=True)).square().sum(), total)[0]
        for name in ("fla_fox", "eager")
    )
    torch.testing.assert_close(got, exact, rtol=0, atol=1e-12)


def steps_of_two() -> Bias:
    return LowRank(torch.ones(1, H, T, 1), 2.0 * AT[None, None, :, None])


def by_query() -> Bias:
    return LowRank(AT[None, None, :, None].float().expand(1, H, -1, -1), AT[None, None, :, None].float())


def slopes(learned: bool = False) -> Bias:
    return LowRank(torch.ones(1, H, T, 1).requires_grad_(learned), AT[None, None, :, None].float())


def distances() -> Bias:
    return Toeplitz(lambda far, m: m * far, [torch.ones(H, 1)], AT, AT, uniform=True)


OTHERS: list[tuple[str, Callable[[], Bias] | None, Mask, int, str]] = [
    ("flash_alibi", steps_of_two, Mask(causal=True), T, "no slope times the position"),
    ("flash_alibi", lambda: slopes(learned=True), Mask(causal=True), T, "no gradient"),
    ("fla_fox", slopes, Mask(causal=True), 1, "decode"),
]
for backend in ("flash_alibi", "fla_fox"):
    OTHERS += [
        (backend, by_query, Mask(causal=True), T, "not the same number"),
        (backend, distances, Mask(causal=True), T, "not the same number"),
        (backend, None, Mask(causal=True), T, "not the same number"),
        (backend, slopes, Mask(), T, "causal mask and no other"),
        (backend, slopes, Mask(True, torch.ones(B, T).bool()), T, "causal mask and no other"),
        (backend, slopes, Mask(True, None, torch.zeros(B, T)), T, "causal mask and no other"),
    ]


@pytest.mark.parametrize(("backend", "bias", "mask", "rows", "reason"), OTHERS)
def test_what_they_do_not_know_is_a_skip(
    backend: str, bias: Callable[[], Bias] | None, mask: Mask, rows: int, reason: str
) -> None:
    with pytest.raises(Unsupported, match=reason):
        load(backend).attend(*qkv(torch.bfloat16, rows), bias() if bias else None, mask)


def test_flash_takes_half_precision_alone() -> None:
    with pytest.raises(Unsupported, match="half precision"):
        load("flash_alibi").attend(*qkv(torch.float32), slopes(), Mask(causal=True))


@pytest.mark.parametrize("name", ["flash_alibi", "fla_fox"])
def test_without_a_gpu_they_are_a_skip(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    made: Backend = load(name)
    with pytest.raises(Unsupported, match="for CUDA alone"):
        made.attend(*qkv(torch.bfloat16), slopes(), Mask(causal=True))


def test_without_the_package_they_are_a_skip() -> None:
    from grape_bench.backends._outside import module

    with pytest.raises(Unsupported, match="some-package is not installed"):
        module("no_such_module.part", "some-package", SimpleNamespace(is_cuda=True))  # type: ignore[arg-type]
