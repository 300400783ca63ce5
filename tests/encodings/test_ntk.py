"""NTK-aware RoPE against published bases and frequencies."""

import math

import pytest
import torch

from grape_bench.encodings import At, Encoding, Site, build
from grape_bench.errors import Unsupported


def ntk(size: int, options: str = "") -> Encoding:
    return build(f"ntk({options})", Site(size, 1, 1, size, 64, 64))


def speeds(encoding: Encoding, size: int, layout: str = "interleaved") -> list[float]:
    """Radians a token of each plane, read off where the first axis of each stands at position 1."""
    firsts = [2 * i if layout == "interleaved" else i for i in range(size // 2)]
    x = torch.zeros(1, 1, 1, size, dtype=torch.float64)
    x[..., firsts] = 1.0
    q, _ = encoding.rotate(x, x, None, At(x, torch.tensor([1]), torch.tensor([1]), uniform=True))
    seconds = [a + 1 if layout == "interleaved" else a + size // 2 for a in firsts]
    return torch.atan2(q[0, 0, 0, seconds], q[0, 0, 0, firsts]).tolist()


@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_the_base_for_a_factor_of_four_is_the_known_one(layout: str) -> None:
    """10000 * 4^(128/126) = 40889.94243248622 for 128 channels."""
    expected = [40889.94243248622 ** (-2 * i / 128) for i in range(64)]
    assert speeds(ntk(128, f"layout={layout!r}"), 128, layout) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("factor", [1, 2, 7.5])
def test_the_slowest_plane_is_interpolated_and_the_fastest_not_at_all(factor: float) -> None:
    got = speeds(ntk(16, f"factor={factor}, base=500"), 16)
    assert got[0] == pytest.approx(1.0, abs=1e-14)
    assert got[-1] == pytest.approx(500 ** (-14 / 16) / factor, rel=1e-12)


def test_turned_vectors_keep_the_sign_of_the_angle() -> None:
    x = torch.zeros(1, 1, 1, 4, dtype=torch.float64)
    x[..., 2] = 1.0
    q, _ = ntk(4, "factor=2").rotate(x, x, None, At(x, torch.tensor([3]), torch.tensor([3]), uniform=True))
    angle = 3 * (10_000 * 2**2) ** -0.5
    assert q.flatten().tolist() == pytest.approx([0, 0, math.cos(angle), math.sin(angle)], abs=1e-12)


@pytest.mark.parametrize(("size", "options"), [(2, ""), (7, ""), (8, "factor=0.5")])
def test_what_has_no_slowest_plane_or_shrinks_is_unsupported(size: int, options: str) -> None:
    with pytest.raises(Unsupported):
        ntk(size, options)
