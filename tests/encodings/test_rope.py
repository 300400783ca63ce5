"""RoPE against plane-by-plane rotations in float64, and against golden vectors.

The golden file `rope.npz` is in the HALVES convention, which pairs channels m and m + D/2 and turns by minus the
angle: `first' = first cos + second sin`. It is our half layout at negative positions. `rope_interleaved.npz` pairs
2m and 2m + 1 and turns by plus the angle: it is our interleaved layout.
"""

import copy
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


def rope(head_dim: int, layout: str = "interleaved", base: float = 10_000, options: str = "") -> Encoding:
    return build(f"rope(layout={layout!r}, base={base}{options})", Site(2 * head_dim, 2, 2, head_dim, 64, 64))


def turn(encoding: Encoding, x: Tensor, positions: Tensor) -> Tensor:
    """Queries (B, H, T, D) at positions (T,)."""
    return encoding.rotate(x, x, None, At(x, positions, positions, uniform=False))[0]


def planes(size: int, layout: str) -> list[tuple[int, int]]:
    return [(2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + size // 2) for i in range(size // 2)]


def by_planes(x: list[float], position: float, layout: str, base: float = 10_000, keep: int = 1000) -> list[float]:
    """One vector turned plane by plane, the first `keep` of them."""
    out = list(x)
    for index, (a, b) in enumerate(planes(len(x), layout)[:keep]):
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


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("size", [2, 8, 64])
def test_layouts_are_one_rotation_in_two_orders_of_channels(size: int, dtype: torch.dtype) -> None:
    order = [*range(0, size, 2), *range(1, size, 2)]
    x = torch.randn(1, 2, 7, size, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)
    at = torch.arange(7) + 40
    interleaved, half = turn(rope(size), x, at)[..., order], turn(rope(size, "half"), x[..., order], at)
    close(interleaved, half, atol=0.0)


def test_a_one_hot_channel_moves_within_its_plane_alone() -> None:
    for layout in LAYOUTS:
        for a, b in planes(8, layout):
            x = torch.zeros(1, 1, 1, 8, dtype=torch.float64)
            x[..., a] = 1.0
            moved = turn(rope(8, layout), x, torch.tensor([3])).flatten().nonzero().flatten().tolist()
            assert moved == [a, b]


def test_the_half_layout_at_negative_positions_is_the_rotation_by_minus_the_angle() -> None:
    x = torch.randn(1, 2, 6, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    at, encoding = torch.arange(6) + 3, rope(8, "half")
    first, second = x.chunk(2, dim=-1)
    theta = at[:, None] * torch.tensor([10_000 ** (-2 * i / 8) for i in range(4)], dtype=torch.float64)
    minus = (first * theta.cos() + second * theta.sin(), -first * theta.sin() + second * theta.cos())
    close(turn(encoding, x, -at), torch.cat(minus, dim=-1), atol=1e-14)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("fraction", [0.25, 0.5, 1])
def test_a_fraction_of_the_channels_turns_like_a_smaller_head_and_the_rest_is_untouched(
    layout: str, fraction: float
) -> None:
    """Exponents and pairs are those of the r channels, not of the head."""
    x = torch.randn(1, 1, 3, 16, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    got, size = (
        turn(rope(16, layout, options=f", fraction={fraction}"), x, torch.tensor([0, 3, 90])),
        int(16 * fraction),
    )
    for t, position in enumerate((0, 3, 90)):
        expected = by_planes(x[0, 0, t, :size].tolist(), position, layout)
        assert got[0, 0, t, :size].tolist() == pytest.approx(expected, abs=1e-12)
    assert torch.equal(got[..., size:], x[..., size:])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("keep", "kept"), [(0.25, 2), (0.5, 4), (0.7, 5), (1, 8)])
def test_keep_turns_the_fastest_planes_of_the_whole_head(layout: str, keep: float, kept: int) -> None:
    x = torch.randn(1, 1, 3, 16, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    got = turn(rope(16, layout, options=f", keep={keep}"), x, torch.tensor([0, 3, 90]))
    for t, position in enumerate((0, 3, 90)):
        expected = by_planes(x[0, 0, t].tolist(), position, layout, keep=kept)
        assert got[0, 0, t].tolist() == pytest.approx(expected, abs=1e-12)
    still = [channel for pair in planes(16, layout)[kept:] for channel in pair]
    assert torch.equal(got[..., still], x[..., still])


def test_a_fraction_and_keep_are_two_encodings() -> None:
    """Of 128 channels a quarter: 16 planes turn in both, with other partners and other speeds."""
    for options, partner, speed in ((", fraction=0.25", 17, 1e4 ** (-2 / 32)), (", keep=0.25", 65, 1e4 ** (-2 / 128))):
        x = torch.zeros(1, 1, 1, 128, dtype=torch.float64)
        x[..., 1] = 1.0
        moved = turn(rope(128, "half", options=options), x, torch.tensor([1])).flatten()
        assert moved.nonzero().flatten().tolist() == [1, partner]
        assert moved[partner].item() == pytest.approx(math.sin(speed), abs=1e-12)
    partial, kept = (rope(128, "half", options=f", {name}=0.25") for name in ("fraction", "keep"))
    for encoding, turning in ((partial, range(32)), (kept, [*range(16), *range(64, 80)])):
        moves = turn(encoding, torch.eye(128, dtype=torch.float64)[None, None], torch.full((128,), 5)).diagonal(0, 2, 3)
        assert (moves != 1).flatten().nonzero().flatten().tolist() == list(turning)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_pair_of_bases_is_spread_over_the_key_heads(layout: str, dtype: torch.dtype) -> None:
    """Query heads turn as the key head of their group, also where positions differ over the batch."""
    encoding = build(f"rope(base=(100, 1e6), layout={layout!r})", Site(48, 6, 3, 8, 64, 64))
    generator = torch.Generator().manual_seed(5)
    q, k = torch.randn(2, 6, 4, 8, generator=generator), torch.randn(2, 3, 4, 8, generator=generator)
    rows = torch.tensor([[0, 1, 5, 90], [3, 4, 7, 8]])
    for positions in (rows[0], rows):
        call = At(q, positions, positions, uniform=False)
        turned = encoding.rotate(q.to(dtype), k.to(dtype), None, call)
        for given, got in zip((q, k), turned, strict=True):
            group = given.shape[1] // 3
            for b in range(2):
                for h in range(given.shape[1]):
                    base = (100, 1e4, 1e6)[h // group]
                    for t, position in enumerate(positions.expand(2, 4)[b].tolist()):
                        expected = by_planes(given[b, h, t].tolist(), position, layout, base)
                        assert got[b, h, t].tolist() == pytest.approx(
                            expected, abs=1e-4 if dtype == torch.float32 else 1e-12
                        )


def test_one_key_head_takes_the_first_base() -> None:
    encoding = build("rope(base=(100, 1e6))", Site(16, 2, 1, 8, 64, 64))
    x = torch.randn(1, 1, 3, 8, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
    close(turn(encoding, x, torch.arange(3)), turn(rope(8, base=100), x, torch.arange(3)), atol=1e-14)


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


def test_casting_or_emptying_the_module_rounds_no_frequency() -> None:
    """It keeps numbers and no buffers, so there is nothing that a cast or a start on the meta device could spoil."""
    x, at = torch.ones(1, 1, 1, 128), torch.tensor([16_384])
    exact = by_planes([1.0] * 128, 16_384, "half")
    for made in (rope(128, "half").half(), copy.deepcopy(rope(128, "half").to(torch.bfloat16)), rope(128, "half")):
        assert not list(made.to_empty(device="cpu").buffers())
        assert turn(made, x, at).flatten().tolist() == pytest.approx(exact, abs=4e-3)


def test_layers_share_a_table_where_all_that_it_is_made_of_is_equal() -> None:
    x, at = torch.ones(1, 2, 4, 8), torch.arange(4)
    call = At(x, at, at, uniform=True)
    for encoding in (rope(8), rope(8), rope(8, base=100), rope(8, "half")):
        encoding.rotate(x, x, None, call)
        encoding.rotate(x.double(), x.double(), None, call)
    assert len(call.tables) == 6  # three encodings in two dtypes, queries and keys standing at the same places


def test_an_odd_head_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="even"):
        rope(7)


@pytest.mark.parametrize(
    "options",
    [
        "fraction=0.3",
        "fraction=1.5",
        "fraction=0",
        "keep=0.1",
        "keep=0",
        "keep=1.5",
        "base=0",
        "base=(-1, 10)",
        "base=(0, 10)",
        "base=(1, -5)",
    ],
)
def test_options_that_leave_no_rotation_are_unsupported(options: str) -> None:
    with pytest.raises(Unsupported):
        build(f"rope({options})", Site(16, 2, 2, 8, 64, 64))
