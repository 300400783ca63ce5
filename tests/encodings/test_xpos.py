"""xPos against plane-by-plane products in float64, decoding, and its overflow."""

import math

import pytest
import torch
from torch import Tensor

from grape_bench.attention import Cache, attend
from grape_bench.backends import Mask
from grape_bench.backends.eager import Eager
from grape_bench.encodings import At, Encoding, Site, build
from grape_bench.errors import Unsupported

LAYOUTS = ["interleaved", "half"]
D = 8


def xpos(options: str = "", *, size: int = D, longest: int = 4096) -> Encoding:
    return build(f"xpos({options})", Site(2 * size, 2, 2, size, 64, longest, causal=True))


def draw(count: int) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v = torch.randn(3, 1, 2, count, D, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return q, k, v


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("base", "scale_base"), [(10_000, 512), (100, 64)])
def test_scores_turn_and_fade_with_distance_plane_by_plane(layout: str, base: float, scale_base: float) -> None:
    """q_i . k_j = Re sum of (q* k) z^((i - j) / scale_base) e^(i w (j - i)), the planes as complex numbers."""
    encoding = xpos(f"layout={layout!r}, base={base}, scale_base={scale_base}")
    q, k, _ = draw(7)
    positions = [0, 1, 2, 5, 40, 300, 900]
    at = torch.tensor(positions)
    turned_q, turned_k = encoding.rotate(q, k, None, At(q, at, at, uniform=False))
    got = turned_q @ turned_k.transpose(-1, -2)
    for h in range(2):
        for row, i in enumerate(positions):
            for col, j in enumerate(positions[: row + 1]):
                expected = 0.0
                for plane in range(D // 2):
                    a, b = (2 * plane, 2 * plane + 1) if layout == "interleaved" else (plane, plane + D // 2)
                    one, other = (complex(x[a], x[b]) for x in (q[0, h, row].tolist(), k[0, h, col].tolist()))
                    zeta, angle = (2 * plane / D + 0.4) / 1.4, (j - i) * base ** (-2 * plane / D)
                    turn = complex(math.cos(angle), math.sin(angle))
                    expected += zeta ** ((i - j) / scale_base) * (one.conjugate() * other * turn).real
                assert got[0, h, row, col].item() == pytest.approx(expected, abs=1e-10)


def test_queries_shrink_and_keys_grow_from_position_zero() -> None:
    """The fastest plane by 3.5 in scale_base tokens, whatever the length of the text."""
    x = torch.zeros(1, 2, 2, D, dtype=torch.float64)
    x[..., 0] = 1.0
    for longest in (512, 30_000):
        at = torch.tensor([0, 512])
        q, k = xpos(longest=longest).rotate(x, x, None, At(x, at, at, uniform=False))
        assert q.norm(dim=-1)[0, 0].tolist() == pytest.approx([1, 1 / 3.5], abs=1e-12)
        assert k.norm(dim=-1)[0, 0].tolist() == pytest.approx([1, 3.5], abs=1e-12)


@pytest.mark.parametrize("steps", [[1] * 30, [7, 1, 20, 2]])
def test_cached_keys_keep_their_scale_when_the_text_grows(steps: list[int]) -> None:
    """Scales from a moving centre change the scores of cached keys by 0.2 to 0.4."""
    encoding, parts, at = xpos("scale_base=16", longest=30), draw(30), torch.arange(30)
    q, k, v = parts
    whole = attend(encoding, Eager(), parts, At(q[:, 0], at, at, uniform=True), Mask(causal=True))
    cache, rows = Cache(30), []
    for piece in at.split(steps):
        new = (q[:, :, piece], k[:, :, piece], v[:, :, piece])
        call = At(q[:, 0, piece], piece, piece, uniform=True)
        rows.append(attend(encoding, Eager(), new, call, Mask(causal=True), cache))
    torch.testing.assert_close(torch.cat(rows, dim=2), whole, rtol=0, atol=1e-10)


def test_fewer_queries_than_keys_have_the_scales_of_their_positions() -> None:
    encoding, (q, k, _), at = xpos(), draw(9), torch.arange(9)
    whole, keys = encoding.rotate(q, k, None, At(q, at, at, uniform=True))
    last, same = encoding.rotate(q[:, :, -2:], k, None, At(q, at[-2:], at, uniform=True))
    torch.testing.assert_close(last, whole[:, :, -2:], rtol=0, atol=1e-12)
    assert torch.equal(same, keys)


def test_the_scale_is_the_known_one_where_it_fits_and_unsupported_where_it_overflows() -> None:
    """3.5^(4096 / 512 / 2) = 1.5e2, 3.5^(65536 / 512 / 2) = 6.6e34, and infinity at 262144 tokens in float32."""
    for position, scale in ((2048, 1.5e2), (32_768, 6.6e34)):
        x = torch.zeros(1, 2, 1, D)
        x[..., 0] = 1.0
        at = torch.tensor([position])
        _, k = xpos(longest=position).rotate(x, x, None, At(x, at, at, uniform=False))
        assert k.double().norm(dim=-1)[0, 0, 0].item() == pytest.approx(scale, rel=0.02)
    for longest in (65_536, 262_144):
        with pytest.raises(Unsupported, match="overflows"):
            xpos(longest=longest)
    xpos("scale_base=4096", longest=262_144)


def test_scores_at_the_far_end_are_those_of_the_beginning() -> None:
    """In float32, up to the error of its angles."""
    encoding, (q, k, _) = xpos(longest=32_768), draw(9)
    scores = []
    for start, dtype in ((0, torch.float64), (32_759, torch.float32)):
        at = torch.arange(start, start + 9)
        one, other = encoding.rotate(q.to(dtype), k.to(dtype), None, At(q, at, at, uniform=True))
        scores.append((one @ other.transpose(-1, -2)).double())
    torch.testing.assert_close(scores[1], scores[0], rtol=0, atol=2e-2)


def test_float16_overflows_sooner() -> None:
    x, at = torch.zeros(1, 2, 1, D, dtype=torch.float16), torch.arange(1)
    xpos(longest=1700).rotate(x, x, None, At(x, at, at, uniform=True))
    with pytest.raises(Unsupported, match="float16"):
        xpos(longest=2048).rotate(x, x, None, At(x, at, at, uniform=True))


def test_an_encoder_a_missing_scale_and_an_odd_head_are_unsupported() -> None:
    with pytest.raises(Unsupported, match="causal"):
        build("xpos", Site(16, 2, 2, 8, 64, 64))
    with pytest.raises(Unsupported, match="scale_base"):
        xpos("scale_base=0")
    with pytest.raises(Unsupported, match="even"):
        xpos(size=7)
