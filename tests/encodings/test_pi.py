"""Position interpolation against RoPE at squeezed positions, plane by plane in float64."""

import math

import pytest
import torch

from grape_bench.encodings import At, Encoding, Site, build
from grape_bench.errors import Unsupported


def pi(size: int, options: str = "") -> Encoding:
    return build(f"pi({options})", Site(2 * size, 2, 2, size, 64, 64))


@pytest.mark.parametrize("layout", ["interleaved", "half"])
@pytest.mark.parametrize(("factor", "base"), [(4, 10_000), (2.5, 500), (1, 10_000)])
def test_every_plane_turns_as_at_a_fraction_of_the_position(layout: str, factor: float, base: float) -> None:
    encoding = pi(8, f"factor={factor}, base={base}, layout={layout!r}")
    x = torch.randn(1, 2, 4, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    positions = [0, 3, 10, 4000]
    at = torch.tensor(positions)
    q, k = encoding.rotate(x, x, None, At(x, at, at, uniform=False))
    assert torch.equal(q, k)
    for t, position in enumerate(positions):
        for i in range(4):
            a, b = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + 4)
            angle = position / factor * base ** (-2 * i / 8)
            for h in range(2):
                one, other = x[0, h, t, a].item(), x[0, h, t, b].item()
                turned = [
                    one * math.cos(angle) - other * math.sin(angle),
                    one * math.sin(angle) + other * math.cos(angle),
                ]
                assert q[0, h, t, [a, b]].tolist() == pytest.approx(turned, abs=1e-10)


def test_it_is_rope_at_positions_divided_by_the_factor() -> None:
    x = torch.randn(1, 2, 4, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    rope, at = build("rope", Site(16, 2, 2, 8, 64, 64)), torch.tensor([0, 8, 44, 100])
    squeezed, _ = pi(8, "factor=4").rotate(x, x, None, At(x, at, at, uniform=False))
    plain, _ = rope.rotate(x, x, None, At(x, at // 4, at // 4, uniform=False))
    torch.testing.assert_close(squeezed, plain, rtol=0, atol=1e-12)


def test_a_factor_below_one_and_an_odd_head_are_unsupported() -> None:
    with pytest.raises(Unsupported, match="factor"):
        pi(8, "factor=0.5")
    with pytest.raises(Unsupported, match="even"):
        pi(7)
