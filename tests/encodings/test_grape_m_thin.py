"""Thin GRAPE-M against matrix exponentials in float64, and against golden vectors."""

import math
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
import torch
from torch import Tensor

from grape_bench.encodings import At, Encoding, Site, build
from grape_bench.errors import Unsupported

GOLDEN = Path(__file__).parents[1] / "data" / "golden"


def golden() -> dict[str, Tensor]:
    with np.load(GOLDEN / "grape_m_noncommuting_thin.npz") as file:
        return {key: torch.from_numpy(file[key]) for key in file}


def thin(options: str = "", *, heads: int = 2, head_dim: int = 8) -> Encoding:
    return build(f"grape_m_thin({options})", Site(16, heads, 2, head_dim, 64, 64)).double()


def load(encoding: Encoding, directions: Tensor, entries: Tensor) -> Encoding:
    with torch.no_grad():
        encoding.directions.copy_(directions)
        encoding.entries.copy_(entries)
    return encoding


def turn(encoding: Encoding, x: Tensor, positions: Tensor) -> Tensor:
    return encoding.rotate(x, x, None, At(x, positions, positions, uniform=False))[0]


def matrices(encoding: Encoding, positions: Tensor, heads: int = 2) -> Tensor:
    """G (H, T, D, D), by turning basis vectors."""
    size = encoding.directions.shape[0]
    basis = torch.eye(size, dtype=torch.float64)[:, None, None].expand(-1, heads, len(positions), -1)
    return turn(encoding, basis, positions).permute(1, 2, 3, 0)


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def below(matrix: Tensor) -> Tensor:
    """What lies below the diagonal, row by row."""
    row, col = np.tril_indices(matrix.shape[-1], -1)
    return matrix[..., row, col]


@pytest.mark.parametrize("rank", [2, 4, 8])
def test_it_is_the_exponential_of_its_generator(rank: int) -> None:
    directions, entries = drawn(0, 8, rank), drawn(1, 2, rank * (rank - 1) // 2)
    positions = [0, 1, -3, 50, 4000]
    encoding = load(thin(f"rank={rank}", heads=4), directions, entries)
    got = matrices(encoding, torch.tensor(positions), heads=4).detach()
    e, upper = np.linalg.qr(directions.numpy())
    e = e * np.sign(np.diag(upper))
    for h in range(4):
        lower = np.zeros((rank, rank))
        lower[np.tril_indices(rank, -1)] = entries[h // 2]
        generator = e @ (lower - lower.T) @ e.T
        for t, position in enumerate(positions):
            np.testing.assert_allclose(got[h, t], scipy.linalg.expm(position * generator), rtol=0, atol=1e-9)


def test_it_starts_as_rope_in_its_first_channels() -> None:
    x, at = drawn(0, 1, 2, 6, 8), torch.arange(6) + 40
    rope = build("rope", Site(8, 2, 2, 4, 64, 64))
    got = turn(thin("rank=4"), x, at)
    torch.testing.assert_close(got[..., :4], turn(rope, x[..., :4], at), rtol=0, atol=1e-6)
    torch.testing.assert_close(got[..., 4:], x[..., 4:], rtol=0, atol=0)


def test_directions_move_without_jumps() -> None:
    """The orthogonal factor of a library may change its sign where a leading entry passes through zero."""
    directions, entries = drawn(0, 8, 4), drawn(1, 2, 6)
    ends = []
    for leading in (-1e-9, 1e-9):
        directions[0, 0] = leading
        ends.append(matrices(load(thin(), directions, entries), torch.tensor([3])))
    torch.testing.assert_close(ends[0], ends[1], rtol=0, atol=1e-6)


def test_golden_vectors() -> None:
    g = golden()
    encoding = load(thin("rank=4"), g["E"], below(g["L_r"]))
    torch.testing.assert_close(matrices(encoding, g["pos"]), g["G"], rtol=0, atol=1e-10)
    q, k = turn(encoding, g["q"], g["pos"]), turn(encoding, g["k"], g["pos"])
    torch.testing.assert_close(q, g["q_rot"], rtol=0, atol=1e-10)
    torch.testing.assert_close(k, g["k_rot"], rtol=0, atol=1e-10)
    scores = (q @ k.mT / 8**0.5).masked_fill(torch.ones(16, 16, dtype=torch.bool).triu(1), -math.inf)
    torch.testing.assert_close(scores, g["logits"], rtol=0, atol=1e-10)


def test_gradients_are_those_of_difference_quotients() -> None:
    x, at = drawn(0, 1, 2, 3, 8), torch.tensor([0, 2, 9])
    encoding = load(thin(), drawn(1, 8, 4), drawn(2, 2, 6))

    def turned(directions: Tensor, entries: Tensor) -> Tensor:
        parameters = {"directions": directions, "entries": entries}
        call = (x, x, None, At(x, at, at, uniform=False))
        return torch.func.functional_call(_Turned(encoding), {f"encoding.{k}": v for k, v in parameters.items()}, call)

    leaves = [one.detach().clone().requires_grad_() for one in (encoding.directions, encoding.entries)]
    assert torch.autograd.gradcheck(turned, leaves)


class _Turned(torch.nn.Module):
    def __init__(self, encoding: Encoding):
        super().__init__()
        self.encoding = encoding

    def forward(self, q: Tensor, k: Tensor, features: None, at: At) -> Tensor:
        return self.encoding.rotate(q, k, features, at)[0]


@pytest.mark.parametrize("rank", [0, 3, 10])
def test_a_rank_that_does_not_fit_is_unsupported(rank: int) -> None:
    with pytest.raises(Unsupported, match="rank"):
        thin(f"rank={rank}")
