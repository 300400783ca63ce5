"""RoPE against plane-by-plane rotations in float64, and against golden vectors.

The golden file `rope.npz` is in the HALVES convention, which pairs channels m and m + D/2 and turns by minus the
angle: `first' = first cos + second sin`. It is our half layout at negative positions. `rope_interleaved.npz` pairs
2m and 2m + 1 and turns by plus the angle: it is our interleaved layout.
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
LAYOUTS = ["interleaved", "half"]


def rope(head_dim: int, layout: str = "interleaved", base: float = 10_000) -> Encoding:
    return build(f"rope(layout={layout!r}, base={base})", Site(2 * head_dim, 2, 2, head_dim, 64, 64))


def turn(encoding: Encoding, x: Tensor, positions: Tensor) -> Tensor:
    """Queries (B, H, T, D) at positions (T,)."""
    return encoding.rotate(x, x, None, At(x, positions, positions, uniform=False))[0]


def planes(size: int, layout: str) -> list[tuple[int, int]]:
    return [(2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + size // 2) for i in range(size // 2)]


def by_planes(x: list[float], position: float, layout: str, base: float = 10_000) -> list[float]:
    """One vector turned plane by plane."""
    out = list(x)
    for index, (a, b) in enumerate(planes(len(x), layout)):
        angle = position * base ** (-2 * index / len(x))
        out[a] = x[a] * math.cos(angle) - x[b] * math.sin(angle)
        out[b] = x[a] * math.sin(angle) + x[b] * math.cos(angle)
    return out


def golden(name: str) -> dict[str, Tensor]:
    with np.load(GOLDEN / f"{name}.npz") as file:
        return {key: torch.from_numpy(file[key]) for key in file}


def scores(q: Tensor, k: Tensor) -> Tensor:
    whole = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    return whole.masked_fill(torch.ones(whole.shape[-2:], dtype=torch.bool).triu(1), -math.inf)


def close(got: Tensor, expected: Tensor, atol: float = 1e-10) -> None:
    torch.testing.assert_close(got, expected, rtol=0, atol=atol)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("base", [10_000, 500_000, 100])
@pytest.mark.parametrize("size", [2, 6, 16])
def test_every_plane_turns_by_its_own_angle(size: int, base: float, layout: str) -> None:
    generator = torch.Generator().manual_seed(size)
    x = torch.randn(2, 3, 5, size, generator=generator, dtype=torch.float64)
    positions = [0, 1, 7, 100, 12345]
    got = turn(rope(size, layout, base), x, torch.tensor(positions))
    for b in range(2):
        for h in range(3):
            for t, position in enumerate(positions):
                expected = by_planes(x[b, h, t].tolist(), position, layout, base)
                assert got[b, h, t].tolist() == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ("interleaved", [-1.27223251, -1.83886499, 2.8786681, 4.08818664]),
        ("half", [-1.41335252, 1.87911807, -2.82885748, 4.05819114]),
    ],
)
def test_one_to_four_at_position_three_is_the_known_vector(layout: str, expected: list[float]) -> None:
    """Position 0 or 1 would hide a wrong layout."""
    x = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64).reshape(1, 1, 1, 4)
    assert turn(rope(4, layout), x, torch.tensor([3])).flatten().tolist() == pytest.approx(expected, abs=1e-8)


def test_the_score_of_two_axes_has_the_sign_of_query_minus_key() -> None:
    """<R(5) e0, R(2) e1> = sin 3; a rotation by minus the angle gives its negative."""
    e0, e1 = torch.eye(4, dtype=torch.float64)[:2].reshape(2, 1, 1, 1, 4)
    encoding = rope(4)
    q, k = turn(encoding, e0, torch.tensor([5])), turn(encoding, e1, torch.tensor([2]))
    assert (q * k).sum().item() == pytest.approx(0.14112000805986721, abs=1e-12)


def test_layouts_are_one_rotation_in_two_orders_of_channels() -> None:
    order = [0, 2, 4, 6, 1, 3, 5, 7]
    x = torch.randn(1, 2, 6, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    at = torch.arange(6) + 40
    interleaved, half = turn(rope(8), x, at)[..., order], turn(rope(8, "half"), x[..., order], at)
    close(interleaved, half, atol=0.0)


def test_a_one_hot_channel_moves_within_its_plane_alone() -> None:
    for layout in LAYOUTS:
        for a, b in planes(8, layout):
            x = torch.zeros(1, 1, 1, 8, dtype=torch.float64)
            x[..., a] = 1.0
            moved = turn(rope(8, layout), x, torch.tensor([3])).flatten().nonzero().flatten().tolist()
            assert moved == [a, b]


def test_the_base_sets_the_slowest_wave() -> None:
    """The last plane turns once in 2 pi base^((D - 2) / D) tokens."""
    for base in (10_000, 500_000):
        period = 2 * math.pi * base ** ((8 - 2) / 8)
        x = torch.zeros(1, 1, 2, 8, dtype=torch.float64)
        x[..., 6] = 1.0
        got = turn(rope(8, base=base), x, torch.tensor([0.0, period], dtype=torch.float64))
        close(got[..., 6:], x[..., 6:], atol=1e-9)


def test_a_common_shift_of_positions_changes_no_score() -> None:
    q, k = torch.randn(2, 1, 2, 9, 16, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    encoding = rope(16)
    here, there = torch.arange(9), torch.arange(9) + 50_000
    one = turn(encoding, q, here) @ turn(encoding, k, here).transpose(-1, -2)
    other = turn(encoding, q, there) @ turn(encoding, k, there).transpose(-1, -2)
    close(one, other, atol=1e-9)


@pytest.mark.parametrize(("position", "allowed"), [(256, 4e-5), (1024, 2e-4), (4096, 6e-4), (131_072, 1.5e-2)])
def test_only_the_output_is_rounded_at_large_positions(position: int, allowed: float) -> None:
    """A phase in bfloat16 is wrong by 0.3 at 256 and by 2 at 4096; one in float32 by what is allowed here."""
    x = torch.ones(1, 1, 1, 128)
    exact = torch.tensor(by_planes([1.0] * 128, position, "interleaved"), dtype=torch.float64)
    at = torch.tensor([position])
    close(turn(rope(128), x, at).flatten().double(), exact, atol=allowed)
    half = turn(rope(128).to(torch.bfloat16), x.to(torch.bfloat16), at)
    assert half.dtype == torch.bfloat16
    close(half.flatten().double(), exact, atol=allowed + 2**-8)


def test_interleaved_golden_vectors() -> None:
    g, encoding = golden("rope_interleaved"), rope(8)
    q, k = turn(encoding, g["q"], torch.arange(16)), turn(encoding, g["k"], torch.arange(16))
    close(q, g["q_rot"])
    close(k, g["k_rot"])
    close(scores(q, k), g["logits"])


def test_half_golden_vectors_at_negative_positions() -> None:
    g, encoding = golden("rope"), rope(8, "half")
    for shift, suffix in ((0, ""), (int(g["pos_offset"]), "_offset")):
        at = -(g["pos"] + shift)
        q, k = turn(encoding, g["q"], at), turn(encoding, g["k"], at)
        close(q, g[f"q_rot{suffix}"])
        close(k, g[f"k_rot{suffix}"])
        close(scores(q, k), g["logits"])


def test_norms_before_the_rotation_keep_the_golden_scores_under_a_shift() -> None:
    g, encoding = golden("rope"), rope(8, "half")

    def rms(x: Tensor, weight: Tensor) -> Tensor:
        return x / (x.pow(2).mean(dim=-1, keepdim=True) + g["rms_eps"]).sqrt() * weight

    q, k = rms(g["q"], g["rms_w_q"]), rms(g["k"], g["rms_w_k"])
    for shift in (0, 1000):
        at = -(g["pos"] + shift)
        close(scores(turn(encoding, q, at), turn(encoding, k, at)), g["logits_norm_before_rotation"])
    # The other order breaks the law, which is why the model normalises first.
    turned = [turn(encoding, g[name], -(g["pos"] + 1000)) for name in ("q", "k")]
    after = scores(rms(turned[0], g["rms_w_q"]), rms(turned[1], g["rms_w_k"]))
    close(after, g["logits_norm_after_rotation_offset"])
    assert (after - g["logits_norm_after_rotation"]).abs().nan_to_num(0.0).max() > 1e-2


def test_the_golden_frequencies_are_those_of_the_base() -> None:
    g = golden("rope")
    expected = [float(g["base"]) ** (-2 * m / 8) for m in range(4)]
    assert g["inv_freq"].tolist() == pytest.approx(expected, abs=1e-12)


def test_an_odd_head_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="even"):
        rope(7)
