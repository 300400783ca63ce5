"""GRAPE-M against plane-by-plane rotations in float64, and against golden vectors.

Golden vectors turn by minus the angle in the half layout: they are ours at negative positions.
"""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from grape_bench.encodings import At, Encoding, Site, build
from grape_bench.errors import Unsupported

GOLDEN = Path(__file__).parents[1] / "data" / "golden"


def golden() -> dict[str, Tensor]:
    with np.load(GOLDEN / "grape_m_nonctx.npz") as file:
        return {key: torch.from_numpy(file[key]) for key in file}


def grape_m(options: str = "", *, heads: int = 2, kv_heads: int = 2, head_dim: int = 8) -> Encoding:
    return build(f"grape_m({options})", Site(16, heads, kv_heads, head_dim, 64, 64)).double()


def turn(encoding: Encoding, q: Tensor, k: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
    return encoding.rotate(q, k, None, At(q, positions, positions, uniform=False))


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def by_planes(x: list[float], position: float, speeds: list[float], layout: str) -> list[float]:
    out, half = list(x), len(x) // 2
    for m, speed in enumerate(speeds):
        a, b = (2 * m, 2 * m + 1) if layout == "interleaved" else (m, m + half)
        cos, sin = math.cos(position * speed), math.sin(position * speed)
        out[a], out[b] = x[a] * cos - x[b] * sin, x[a] * sin + x[b] * cos
    return out


@pytest.mark.parametrize("layout", ["interleaved", "half"])
@pytest.mark.parametrize("heads", ["shared", "own"])
def test_every_plane_turns_at_its_learned_speed_and_queries_as_their_key_head(heads: str, layout: str) -> None:
    encoding = grape_m(f"heads={heads!r}, layout={layout!r}", heads=4)
    stored = 10 * drawn(0, *encoding.stored.shape)
    with torch.no_grad():
        encoding.stored.copy_(stored)
    q, k, positions = drawn(1, 2, 4, 5, 8), drawn(2, 2, 2, 5, 8), [0, 1, 7, 100, 12345]
    turned = turn(encoding, q, k, torch.tensor(positions))
    for given, got, group in ((q, turned[0], 2), (k, turned[1], 1)):
        for b in range(2):
            for h in range(given.shape[1]):
                row = h // group if heads == "own" else 0
                speeds = [math.exp(r / 16) for r in stored[row].tolist()]
                for t, position in enumerate(positions):
                    expected = by_planes(given[b, h, t].tolist(), position, speeds, layout)
                    assert got[b, h, t].tolist() == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("base", [10_000, 500])
def test_it_starts_as_rope(base: int) -> None:
    q, at = drawn(0, 1, 2, 6, 8), torch.arange(6) + 40
    rope = build(f"rope(base={base})", Site(16, 2, 2, 8, 64, 64))
    expected, _ = turn(rope, q, q, at)
    torch.testing.assert_close(turn(grape_m(f"base={base}"), q, q, at)[0], expected, rtol=0, atol=1e-4)


def test_a_step_moves_log_speeds_sixteen_times_less() -> None:
    encoding, x = grape_m(), drawn(0, 1, 2, 1, 8)
    at = torch.tensor([1.0], dtype=torch.float64)
    with torch.no_grad():
        encoding.stored.zero_()
        encoding.stored += 16 * math.log(2)
    expected = by_planes(x[0, 0, 0].tolist(), 1.0, [2.0] * 4, "interleaved")
    assert turn(encoding, x, x, at)[0][0, 0, 0].tolist() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("heads", ["shared", "own"])
def test_golden_vectors_at_negative_positions(heads: str) -> None:
    g, suffix = golden(), {"shared": "shared", "own": "perhead"}[heads]
    encoding = grape_m(f"heads={heads!r}, layout='half'")
    torch.testing.assert_close(encoding.stored[0], g["log_freq_param_init"], rtol=0, atol=1e-5)
    with torch.no_grad():
        encoding.stored.copy_(g[f"log_freq_param_{suffix}"])
    q, k = turn(encoding, g["q"], g["k"], -g["pos"])
    torch.testing.assert_close(q, g[f"q_rot_{suffix}"], rtol=0, atol=1e-10)
    torch.testing.assert_close(k, g[f"k_rot_{suffix}"], rtol=0, atol=1e-10)
    scores = (q @ k.mT / 8**0.5).masked_fill(torch.ones(16, 16, dtype=torch.bool).triu(1), -math.inf)
    torch.testing.assert_close(scores, g[f"logits_{suffix}"], rtol=0, atol=1e-10)


def test_an_odd_head_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="even"):
        grape_m(head_dim=7)
