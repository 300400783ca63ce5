"""Dense rotations against matrix exponentials in float64, for each way to make the generator."""

import numpy as np
import pytest
import scipy.linalg
import torch
from torch import Tensor

from grape_bench.encodings import At, Encoding, Site, build
from grape_bench.errors import Unsupported

KINDS = ["algebraic", "lie", "com"]
POSITIONS = [0, 1, -3, 50, 4000]


def dense(kind: str, *, heads: int = 2, head_dim: int = 8, block: int = 4) -> Encoding:
    text = f"dense(generator={kind!r}, block={block})"
    return build(text, Site(heads * head_dim, heads, 2, head_dim, 64, 64)).double()


def scramble(encoding: Encoding) -> Encoding:
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in encoding.parameters():
            parameter.copy_(0.5 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return encoding


def skew(entries: np.ndarray, size: int) -> np.ndarray:
    lower = np.zeros((size, size))
    count = 0
    for row in range(size):
        for col in range(row):
            lower[row, col] = entries[count]
            count += 1
    return lower - lower.T


def generator(encoding: Encoding, kind: str, head: int) -> np.ndarray:
    """A (D, D) of one key head, put together block by block."""
    entries = encoding.entries[head].detach().numpy()
    if kind == "algebraic":
        return skew(entries[0], 8)
    if kind == "lie":
        return scipy.linalg.block_diag(*(skew(one, 4) for one in entries))
    speeds = encoding.speed[head, :, 0].tolist()
    return scipy.linalg.block_diag(*(speed * skew(entries[0], 4) for speed in speeds))


def turn(encoding: Encoding, x: Tensor, positions: Tensor) -> Tensor:
    return encoding.rotate(x, x, None, At(x, positions, positions, uniform=False))[0]


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_exponential_of_its_generator(kind: str) -> None:
    encoding, x = scramble(dense(kind, heads=4)), drawn(1, 1, 4, 5, 8)
    got = turn(encoding, x, torch.tensor(POSITIONS)).detach()
    for h in range(4):
        a = generator(encoding, kind, h // 2)
        for t, position in enumerate(POSITIONS):
            # exp(50 A)^80 is nearer to exp(4000 A) than scipy's own scaling of so large a matrix.
            steps = 80 if position == 4000 else 1
            expected = np.linalg.matrix_power(scipy.linalg.expm(position / steps * a), steps) @ x[0, h, t].numpy()
            np.testing.assert_allclose(got[0, h, t], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("head_dim", [4, 8, 16])
def test_it_starts_as_rope(kind: str, head_dim: int) -> None:
    x, at = drawn(0, 1, 2, 6, head_dim), torch.arange(6) + 40
    rope = build("rope", Site(2 * head_dim, 2, 2, head_dim, 64, 64))
    torch.testing.assert_close(turn(dense(kind, head_dim=head_dim), x, at), turn(rope, x, at), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("start", ["random", "rope"])
def test_gradients_are_those_of_difference_quotients(kind: str, start: str) -> None:
    encoding = scramble(dense(kind)) if start == "random" else dense(kind)
    x, at, step = drawn(0, 1, 2, 4, 8), torch.tensor([0, 1, 7, 30]), 1e-6
    towards = drawn(1, 1, 2, 4, 8)
    (turn(encoding, x, at) * towards).sum().backward()
    for parameter in encoding.parameters():
        move = drawn(2, *parameter.shape)
        ends = []
        with torch.no_grad():
            for sign in (1, -1):
                parameter += sign * step * move
                ends.append((turn(encoding, x, at) * towards).sum())
                parameter -= sign * step * move
        slope = (ends[0] - ends[1]) / (2 * step)
        torch.testing.assert_close((parameter.grad * move).sum(), slope, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_equal_frequencies_turn_as_they_should_and_have_finite_gradients(kind: str) -> None:
    encoding, x = dense(kind), drawn(0, 1, 2, 3, 8)
    with torch.no_grad():
        for parameter in encoding.parameters():
            parameter.copy_(parameter.sign())  # every plane by one radian a token
    got = turn(encoding, x, torch.tensor([0, 1, 9]))
    for t, position in enumerate((0, 1, 9)):
        expected = scipy.linalg.expm(position * generator(encoding, kind, 1)) @ x[0, 1, t].numpy()
        np.testing.assert_allclose(got[0, 1, t].detach(), expected, rtol=0, atol=1e-12)
    got.square().sum().backward()
    assert all(one.grad.isfinite().all() for one in encoding.parameters())


def test_a_generator_of_zero_turns_nothing() -> None:
    encoding, x = dense("algebraic"), drawn(0, 1, 2, 3, 8)
    with torch.no_grad():
        encoding.entries.zero_()
    torch.testing.assert_close(turn(encoding, x, torch.tensor([0, 1, 4000])), x, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("kind", "head_dim", "block"), [("algebraic", 7, 4), ("lie", 8, 3), ("com", 8, 6)])
def test_blocks_that_do_not_fill_the_head_are_unsupported(kind: str, head_dim: int, block: int) -> None:
    with pytest.raises(Unsupported, match="blocks"):
        dense(kind, head_dim=head_dim, block=block)
