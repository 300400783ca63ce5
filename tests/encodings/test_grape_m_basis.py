"""GRAPE-M in a learned basis against products of matrices in float64, and against golden vectors."""

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
    with np.load(GOLDEN / "grape_m_learned_basis.npz") as file:
        return {key: torch.from_numpy(file[key]) for key in file}


def basis(*, heads: int = 2, kv_heads: int = 2, head_dim: int = 8) -> Encoding:
    return build("grape_m_basis", Site(16, heads, kv_heads, head_dim, 64, 64)).double()


def turn(encoding: Encoding, x: Tensor, positions: Tensor) -> Tensor:
    return encoding.rotate(x, x, None, At(x, positions, positions, uniform=False))[0]


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def rotation(angles: list[float]) -> np.ndarray:
    """Blocks of a turn along the diagonal."""
    return scipy.linalg.block_diag(*([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]] for a in angles))


def test_it_turns_along_the_axes_of_its_basis() -> None:
    encoding, x, positions = basis(heads=4), drawn(0, 1, 4, 5, 8), [0, 1, -2, 50, 4000]
    entries, stored = drawn(1, 2, 28), drawn(2, 2, 4)
    with torch.no_grad():
        encoding.entries.copy_(entries)
        encoding.stored.copy_(stored)
    got = turn(encoding, x, torch.tensor(positions)).detach()
    for h in range(4):
        lower = np.zeros((8, 8))
        lower[np.tril_indices(8, -1)] = entries[h // 2]
        e = scipy.linalg.expm(lower - lower.T)
        for t, position in enumerate(positions):
            angles = [position * math.exp(r / 16) for r in stored[h // 2].tolist()]
            expected = e @ rotation(angles) @ e.T @ x[0, h, t].numpy()
            np.testing.assert_allclose(got[0, h, t], expected, rtol=0, atol=1e-10)


def test_it_starts_as_rope() -> None:
    x, at = drawn(0, 1, 2, 6, 8), torch.arange(6) + 40
    rope = build("rope", Site(16, 2, 2, 8, 64, 64))
    torch.testing.assert_close(turn(basis(), x, at), turn(rope, x, at), rtol=0, atol=1e-4)


def test_golden_vectors() -> None:
    g, encoding = golden(), basis()
    below = torch.tril_indices(8, 8, offset=-1)
    with torch.no_grad():
        encoding.stored.copy_(16 * g["freq"].log())
        for h in range(2):
            generator = torch.from_numpy(scipy.linalg.logm(g["E"][h].numpy()).real)
            encoding.entries[h] = generator[below[0], below[1]]
    q, k = turn(encoding, g["q"], g["pos"]), turn(encoding, g["k"], g["pos"])
    torch.testing.assert_close(q, g["q_rot"], rtol=0, atol=1e-10)
    torch.testing.assert_close(k, g["k_rot"], rtol=0, atol=1e-10)
    scores = (q @ k.mT / 8**0.5).masked_fill(torch.ones(16, 16, dtype=torch.bool).triu(1), -math.inf)
    torch.testing.assert_close(scores, g["logits"], rtol=0, atol=1e-10)


def test_an_odd_head_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="even"):
        basis(head_dim=7)
