"""How far each backend is from the same in float64, of inputs rounded to its number format."""

from collections.abc import Callable
from functools import cache

import pytest
import torch
from by_hand import KINDS, MAKERS, attend, by_hand, every, gradients, inputs, make_bias, padded
from torch import Tensor

from grape_bench.backends import Mask

HALF = {torch.float16: 4e-3, torch.bfloat16: 3e-2}
# Errors relative to the largest number of the exact tensor: of outputs, and the worst of all gradients.
ALLOWED = {torch.float32: (1e-5, 1e-4), torch.bfloat16: (5e-3, 2e-2)}
STEPWISE = (3e-2, 6e-2)  # eager in bfloat16 rounds the scores as well
LONG = 101


@every
@pytest.mark.parametrize("kind", ["nothing", "toeplitz", "low_rank"])
@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("learned", [False, True])
def test_half_precision_is_within_its_tolerance(
    name: str, kind: str, dtype: torch.dtype, padding: bool, learned: bool
) -> None:
    keys = padded(7) if padding else None
    qkv = [one.to(dtype) for one in inputs(7, 7)]
    bias, own = make_bias(kind, 7, 7)
    if bias is not None:
        bias = bias.with_leaves([leaf.detach().float().requires_grad_(learned) for leaf in own])
    out = attend(name, qkv, bias, Mask(True, keys))
    assert out.dtype == dtype
    exact_bias = None if bias is None else bias.with_leaves([leaf.detach().double() for leaf in bias.leaves()])
    exact = by_hand([one.double() for one in qkv], exact_bias, Mask(True, keys))
    torch.testing.assert_close(out.detach().double(), exact, rtol=0, atol=HALF[dtype])


@every
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("work", ["forward", "backward", "learning", "decode"])
@pytest.mark.parametrize("dtype", ALLOWED)
def test_errors_are_within_the_table(
    name: str, kind: str, work: str, dtype: torch.dtype, record_property: Callable[[str, object], None]
) -> None:
    """`backward` holds the bias fixed, `learning` takes gradients of all that it is made of."""
    got, exact = worked(name, kind, work, dtype), oracle(kind, work, dtype)
    errors = [error(one, other) for one, other in zip(got, exact, strict=True)]
    shown = (name, kind, work, str(dtype).removeprefix("torch."))
    record_property("errors", (*shown, errors[0], max(errors[1:], default=0.0)))
    output, gradient = STEPWISE if name == "eager" and dtype == torch.bfloat16 else ALLOWED[dtype]
    assert errors[0] <= output
    assert max(errors[1:], default=0.0) <= gradient


@cache
def oracle(kind: str, work: str, dtype: torch.dtype) -> list[Tensor]:
    """The same in float64, of inputs that were rounded to the number format."""
    return worked("eager", kind, work, dtype, exactly=True)


def worked(name: str, kind: str, work: str, dtype: torch.dtype, *, exactly: bool = False) -> list[Tensor]:
    """Outputs, and the gradients that the work takes."""
    T, grads, learning = 1 if work == "decode" else LONG, work in ("backward", "learning"), work == "learning"
    made = MAKERS[kind](T, LONG) if kind != "nothing" else None
    wide = torch.float64 if exactly else torch.float32
    own = [leaf.float().to(wide).requires_grad_(learning) for leaf in made.leaves()] if made else []
    qkv = [one.to(dtype).to(wide if exactly else dtype).requires_grad_(grads) for one in inputs(T, LONG, 2)]
    with torch.set_grad_enabled(grads):
        out = attend(name, qkv, made.with_leaves(own) if made else None, Mask(causal=True))
    return [out.detach(), *(gradients(out, qkv + own * learning) if grads else [])]


def error(given: Tensor, exact: Tensor) -> float:
    """Relative to the largest number, or absolute where there is none: softmax does not see a row's constant."""
    largest = exact.abs().max().item()
    return (given.double() - exact).abs().max().item() / (largest if largest > 1e-9 else 1.0)
