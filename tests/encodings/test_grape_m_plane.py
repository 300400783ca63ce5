"""GRAPE-M in one plane against matrix exponentials in float64, and against golden vectors."""

import math
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
import torch
from torch import Tensor

from grape_bench.encodings import At, Encoding, Site, build

GOLDEN = Path(__file__).parents[1] / "data" / "golden"


def golden() -> dict[str, Tensor]:
    with np.load(GOLDEN / "grape_m_rank2.npz") as file:
        return {key: torch.from_numpy(file[key]) for key in file}


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def plane(a: Tensor, b: Tensor, speed: Tensor, *, heads: int = 2) -> Encoding:
    encoding = build("grape_m_plane", Site(16, heads, len(speed), a.shape[1], 64, 64)).double()
    with torch.no_grad():
        for parameter, value in ((encoding.a, a), (encoding.b, b), (encoding.speed, speed)):
            parameter.copy_(value)
    return encoding


def turn(encoding: Encoding, x: Tensor, positions: Tensor) -> Tensor:
    return encoding.rotate(x, x, None, At(x, positions, positions, uniform=False))[0]


def matrices(encoding: Encoding, positions: Tensor, heads: int = 2) -> Tensor:
    """G (H, T, D, D), by turning basis vectors."""
    size = encoding.a.shape[1]
    basis = torch.eye(size, dtype=torch.float64)[:, None, None].expand(-1, heads, len(positions), -1)
    return turn(encoding, basis, positions).permute(1, 2, 3, 0)


@pytest.mark.parametrize("size", [2, 3, 8])
def test_it_is_the_exponential_of_its_generator(size: int) -> None:
    a, b, speed, positions = drawn(0, 2, size), drawn(1, 2, size), drawn(2, 2), [0, 1, -3, 50, 4000]
    got = matrices(plane(a, b, speed, heads=4), torch.tensor(positions), heads=4)
    for h in range(4):
        row = h // 2
        generator = np.outer(a[row], b[row]) - np.outer(b[row], a[row])
        for t, position in enumerate(positions):
            expected = scipy.linalg.expm(position * speed[row].item() * generator)
            np.testing.assert_allclose(got[h, t].detach(), expected, rtol=0, atol=1e-9)


def test_golden_vectors() -> None:
    g = golden()
    encoding = plane(g["a"], g["b"], g["omega"])
    torch.testing.assert_close(matrices(encoding, g["pos"]), g["G"], rtol=0, atol=1e-10)
    q, k = turn(encoding, g["q"], g["pos"]), turn(encoding, g["k"], g["pos"])
    torch.testing.assert_close(q, g["q_rot"], rtol=0, atol=1e-10)
    torch.testing.assert_close(k, g["k_rot"], rtol=0, atol=1e-10)
    scores = (q @ k.mT / 8**0.5).masked_fill(torch.ones(16, 16, dtype=torch.bool).triu(1), -math.inf)
    torch.testing.assert_close(scores, g["logits"], rtol=0, atol=1e-10)


def test_a_plane_that_closed_to_a_line_turns_nothing_and_has_gradients() -> None:
    g = golden()
    encoding = plane(g["a_parallel"], g["b_parallel"], g["omega"])
    got = matrices(encoding, torch.tensor([5]))
    torch.testing.assert_close(got[:, 0], g["G_parallel_n5"], rtol=0, atol=1e-10)
    got.square().sum().backward()
    assert all(one.grad.isfinite().all() for one in encoding.parameters())


@pytest.mark.parametrize("opening", [1e-3, 1e-6, 1e-9])
def test_a_nearly_closed_plane_still_turns_by_a_rotation(opening: float) -> None:
    a = drawn(0, 1, 8)
    encoding = plane(a, 2 * a + opening * drawn(1, 1, 8), torch.ones(1), heads=1)
    g = matrices(encoding, torch.tensor([1, 1000]), heads=1)[0].detach()
    torch.testing.assert_close(g.mT @ g, torch.eye(8, dtype=torch.float64).expand(2, -1, -1), rtol=0, atol=1e-10)
    generator = a.T @ encoding.b.detach() - encoding.b.detach().T @ a
    np.testing.assert_allclose(g[1], scipy.linalg.expm(1000 * generator.numpy()), rtol=0, atol=1e-9)


def test_planes_start_at_random_and_speeds_as_a_spectrum_over_heads() -> None:
    encoding = build("grape_m_plane", Site(512, 8, 4, 400, 64, 64))
    encoding.reset(torch.Generator().manual_seed(0))
    assert encoding.speed.tolist() == pytest.approx([1.0, 0.1, 0.01, 0.001], rel=1e-6)
    for side in (encoding.a, encoding.b):
        assert side.norm(dim=1).tolist() == pytest.approx([1.0] * 4, rel=0.2)
