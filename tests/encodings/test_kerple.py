"""KERPLE against the formula number by number in float64, its bounds, and its gradients by autograd of plain terms."""

import math

import pytest
import torch
from torch import Tensor

from grape_bench.attention import attend
from grape_bench.backends import Backend, Mask
from grape_bench.backends.eager import Eager
from grape_bench.backends.sdpa import Sdpa
from grape_bench.encodings import At, Site, build
from grape_bench.encodings.kerple import Kerple

P, A = [0.5, 1.9, 1.7], [0.3, 0.02, 4.0]
FORMS = ["log", "power"]


def kerple(form: str = "log", p: list[float] = P, a: list[float] = A, *, causal: bool = False) -> Kerple:
    encoding = build(f"kerple(form={form!r})", Site(12, 3, 3, 4, 64, 64, causal=causal)).double()
    assert isinstance(encoding, Kerple)
    with torch.no_grad():
        encoding.p.copy_(torch.tensor(p))
        encoding.a.copy_(torch.tensor(a))
    return encoding


def tile(encoding: Kerple, q_pos: Tensor, k_pos: Tensor, *, uniform: bool = False) -> Tensor:
    q = torch.zeros(1, 3, len(q_pos), 4, dtype=torch.float64)
    return encoding.bias(q, None, At(q, q_pos, k_pos, uniform)).tile()[0]


def value(form: str, p: float, a: float, far: float) -> float:
    return -p * math.log(1 + a * far) if form == "log" else -a * far**p


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("uniform", [True, False])
def test_the_bias_is_the_formula_on_both_sides(form: str, uniform: bool) -> None:
    encoding = kerple(form)
    p, a = (one.tolist() for one in (encoding.p, encoding.a))
    got = tile(encoding, torch.arange(8) + 300, torch.arange(8) + 300, uniform=uniform)
    for h in range(3):
        for i in range(8):
            for j in range(8):
                assert got[h, i, j].item() == pytest.approx(value(form, p[h], a[h], abs(i - j)), abs=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_both_parameters_stay_above_a_hundredth_by_reflection(form: str) -> None:
    got = tile(kerple(form, p=[-1.0, 0.0, 0.5], a=[0.5, -3.0, 0.0]), torch.tensor([9]), torch.tensor([0]))
    for h, (p, a) in enumerate([(1.02, 0.5), (0.02, 3.02), (0.5, 0.02)]):
        assert got[h, 0, 0].item() == pytest.approx(value(form, p, a, 9.0), abs=1e-12)


def test_a_power_is_two_at_most_and_a_logarithm_has_no_such_bound() -> None:
    """Beyond 2 the kernel is no longer conditionally positive definite."""
    for form, expected in (("power", -0.5 * 9.0**1.5), ("log", -2.5 * math.log(1 + 0.5 * 9))):
        got = tile(kerple(form, p=[2.5] * 3, a=[0.5] * 3), torch.tensor([9]), torch.tensor([0]))
        assert got[0, 0, 0].item() == pytest.approx(expected, abs=1e-12)


def test_parameters_start_uniform_in_their_ranges() -> None:
    encoding = build("kerple", Site(16_000, 4000, 4000, 4, 64, 64))
    assert isinstance(encoding, Kerple)
    encoding.reset(torch.Generator().manual_seed(0))
    for one, most in ((encoding.p, 2.0), (encoding.a, 1.0)):
        assert 0.0 <= one.min().item() < one.max().item() <= most
        assert one.mean().item() == pytest.approx(most / 2, abs=0.02 * most)
        assert one.std().item() == pytest.approx(most / math.sqrt(12), abs=0.02 * most)


@pytest.mark.parametrize("form", FORMS)
def test_a_parameter_beyond_its_bound_finds_its_way_back(form: str) -> None:
    """A clamp alone would stop its gradient for good."""
    encoding = kerple(form, p=[-1.0] * 3, a=[-1.0] * 3)
    tile(encoding, torch.arange(6), torch.arange(6)).sum().backward()
    for one in (encoding.p, encoding.a):
        assert one.grad is not None
        assert (one.grad.abs() > 1e-3).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("backend", [Eager(), Sdpa()], ids=["eager", "sdpa"])
def test_gradients_through_attention_are_those_of_plain_terms(form: str, backend: Backend) -> None:
    generator = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, 2, 3, 6, 4, generator=generator, dtype=torch.float64)
    weight, at = torch.randn(2, 3, 6, 4, generator=generator, dtype=torch.float64), torch.arange(6)
    encoding = kerple(form, causal=True)
    out = attend(encoding, backend, (q, k, v), At(q, at, at, uniform=True), Mask(causal=True))
    got = torch.autograd.grad((out * weight).sum(), [encoding.p, encoding.a])
    p, a = (one.detach().clone().requires_grad_() for one in (encoding.p, encoding.a))
    total = torch.zeros((), dtype=torch.float64)
    for b in range(2):
        for h in range(3):
            for i in range(6):
                far = torch.arange(i, -1, -1, dtype=torch.float64)
                bias = -p[h] * torch.log(1 + a[h] * far) if form == "log" else -a[h] * far ** p[h]
                chances = torch.softmax(k[b, h, : i + 1] @ q[b, h, i] / 2 + bias, dim=0)
                total = total + (chances @ v[b, h, : i + 1] * weight[b, h, i]).sum()
    for one, exact in zip(got, torch.autograd.grad(total, [p, a]), strict=True):
        assert one.isfinite().all()
        torch.testing.assert_close(one, exact, rtol=0, atol=1e-10)
