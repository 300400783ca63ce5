"""What all rotary encodings share: gradients, learned tables and compilation.

Shapes: B batch, H heads, T queries, D head channels.
"""

import pytest
import torch
from torch import Tensor

from grape_bench.encodings._rotary import Layout, spectrum, table, turn
from grape_bench.errors import Unsupported

LAYOUTS = ["interleaved", "half"]
B, H, T, D = 2, 4, 5, 8

each_layout = pytest.mark.parametrize("layout", LAYOUTS)


def draw(seed: int, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def plainly(x: Tensor, angle: Tensor, layout: Layout, size: int = D) -> Tensor:
    """Each plane on its own; angle (..., T, r/2)."""
    channels = list(x.unbind(dim=-1))
    for i in range(size // 2):
        a, b = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + size // 2)
        cos, sin = angle[..., i].cos(), angle[..., i].sin()
        channels[a], channels[b] = x[..., a] * cos - x[..., b] * sin, x[..., a] * sin + x[..., b] * cos
    return torch.stack(channels, dim=-1)


@each_layout
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [4, D])
def test_gradients_of_what_is_turned_are_those_of_plain_formulas(layout: Layout, dtype: torch.dtype, size: int) -> None:
    x, along = draw(0, B, H, T, D, dtype=dtype).requires_grad_(), draw(1, B, H, T, D, dtype=dtype)
    frequency = torch.tensor(spectrum(size, 100.0), dtype=dtype)
    cis, angle = table(torch.arange(T), frequency), torch.arange(T)[:, None] * frequency
    got, expected = turn(x, cis, layout), plainly(x, angle, layout, size)
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-6)
    (grad,), (exact,) = (torch.autograd.grad((one * along).pow(2).sum(), x) for one in (got, expected))
    torch.testing.assert_close(grad, exact, rtol=0, atol=1e-4 if dtype == torch.float32 else 1e-12)


@each_layout
@pytest.mark.parametrize("rows", ["shared", "of heads"])
@pytest.mark.parametrize("batched", [False, True])
def test_frequencies_are_learned_through_the_table(layout: Layout, rows: str, batched: bool) -> None:
    shape = (2, D // 2) if rows == "of heads" else (D // 2,)  # two key heads, four query heads
    frequency, x = draw(0, *shape).requires_grad_(), draw(1, B, H, T, D).requires_grad_()
    positions = torch.stack((torch.arange(T), torch.arange(T) + 7)) if batched else torch.arange(T)
    place = positions.double().expand(B, T)[:, None, :, None]
    of_query = frequency.repeat_interleave(2, dim=0) if rows == "of heads" else frequency[None]
    expected = plainly(x, place * of_query[:, None], layout)
    got = turn(x, table(positions, frequency), layout)
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-12)
    along = draw(2, B, H, T, D)
    grads, exact = (torch.autograd.grad((one * along).sum(), (x, frequency)) for one in (got, expected))
    torch.testing.assert_close(grads, exact, rtol=0, atol=1e-11)


@each_layout
def test_gradients_of_gradients_are_right(layout: Layout) -> None:
    cis = table(torch.arange(T), torch.tensor(spectrum(D, 100.0)))
    x, along = draw(0, 1, 1, T, D, dtype=torch.float32).requires_grad_(), draw(1, 1, 1, T, D, dtype=torch.float32)
    (grad,) = torch.autograd.grad((turn(x, cis, layout).pow(3) * along).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(grad.pow(2).sum(), x)
    angle = torch.arange(T)[:, None] * torch.tensor(spectrum(D, 100.0))
    (grad,) = torch.autograd.grad((plainly(x, angle, layout).pow(3) * along).sum(), x, create_graph=True)
    (exact,) = torch.autograd.grad(grad.pow(2).sum(), x)
    torch.testing.assert_close(second, exact, rtol=1e-4, atol=1e-3)


@each_layout
def test_half_precision_is_rounded_once(layout: Layout) -> None:
    x, cis = draw(0, B, H, T, D, dtype=torch.bfloat16), table(torch.arange(T), torch.tensor(spectrum(D, 100.0)))
    assert torch.equal(turn(x, cis, layout), turn(x.float(), cis, layout).to(torch.bfloat16))


@each_layout
def test_it_takes_heads_that_are_views(layout: Layout) -> None:
    """Projections are (B, T, H D) in memory, and heads that are expanded have no memory of their own."""
    cis = table(torch.arange(T), torch.tensor(spectrum(D, 100.0)))
    for view in (draw(0, B, T, H, D).transpose(1, 2), draw(0, B, 1, T, D).expand(-1, H, -1, -1)):
        x = view.float()
        torch.testing.assert_close(turn(x, cis, layout), turn(x.contiguous(), cis, layout), rtol=0, atol=1e-6)


@each_layout
def test_an_infinite_value_stays_in_its_plane(layout: Layout) -> None:
    """Padding may hold anything."""
    x = draw(0, 1, 1, T, D, dtype=torch.float32)
    x[..., 2, 1] = torch.inf
    got = turn(x, table(torch.arange(T), torch.tensor(spectrum(D, 100.0))), layout)
    partner = 0 if layout == "interleaved" else 1 + D // 2
    assert (~got.isfinite()).nonzero()[:, 2:].tolist() == sorted([[2, 1], [2, partner]])


def test_a_spectrum_needs_pairs_and_a_base_above_zero() -> None:
    for size, base in ((7, 10.0), (8, 0.0)):
        with pytest.raises(Unsupported):
            spectrum(size, base)


@each_layout
def test_a_compiler_takes_it_in_one_graph(layout: Layout) -> None:
    cis = table(torch.arange(T), torch.tensor(spectrum(D, 100.0)))
    x = draw(0, B, H, T, D, dtype=torch.float32).requires_grad_()
    got = torch.compile(turn, fullgraph=True, backend="aot_eager")(x, cis, layout)
    torch.testing.assert_close(got, turn(x, cis, layout), rtol=0, atol=1e-6)
    grads = [torch.autograd.grad(one.pow(2).sum(), x)[0] for one in (got, turn(x, cis, layout))]
    torch.testing.assert_close(*grads, rtol=0, atol=1e-5)
