"""YaRN against published frequencies, and against its two ramps written as loops."""

import math

import pytest
import torch

from grape_bench.encodings import At, Encoding, Site, build
from grape_bench.errors import Unsupported


def yarn(size: int, options: str = "", *, train_length: int = 4096, longest: int = 4096) -> Encoding:
    return build(f"yarn({options})", Site(size, 1, 1, size, train_length, longest))


def planes(encoding: Encoding, size: int, layout: str = "interleaved") -> tuple[list[float], list[float]]:
    """Radians a token of each plane and its scale, read off where the first axis of each stands at position 1."""
    firsts = [2 * i if layout == "interleaved" else i for i in range(size // 2)]
    seconds = [a + 1 if layout == "interleaved" else a + size // 2 for a in firsts]
    x = torch.zeros(1, 1, 1, size, dtype=torch.float64)
    x[..., firsts] = 1.0
    q, k = encoding.rotate(x, x, None, At(x, torch.tensor([1]), torch.tensor([1]), uniform=True))
    assert torch.equal(q, k)
    one, other = q[0, 0, 0, firsts], q[0, 0, 0, seconds]
    return torch.atan2(other, one).tolist(), torch.hypot(one, other).tolist()


def by_index(size: int, base: float, factor: float, length: float, fast: float, slow: float) -> list[float]:
    """As programs have it: a mask over plane numbers, 0 to leave alone and 1 to interpolate."""
    low, high = (size * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(base)) for turns in (fast, slow))
    low, high = max(math.floor(low), 0), min(math.ceil(high), size - 1)
    found = []
    for i in range(size // 2):
        mask = min(max((i - low) / (high - low), 0), 1)
        w = base ** (-2 * i / size)
        found.append(w / factor * mask + w * (1 - mask))
    return found


def by_turns(size: int, base: float, factor: float, length: float, fast: float, slow: float) -> list[float]:
    """As the paper has it: r = L / wavelength, gamma(r)."""
    found = []
    for i in range(size // 2):
        w = base ** (-2 * i / size)
        r = length / (2 * math.pi / w)
        gamma = 0.0 if r < slow else 1.0 if r > fast else (r - slow) / (fast - slow)
        found.append((1 - gamma) * w / factor + gamma * w)
    return found


@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_frequencies_are_the_known_ones(layout: str) -> None:
    """Factor 4 over 4096 tokens, published in float32; an inverted ramp gives the fastest plane 0.25."""
    got, _ = planes(yarn(128, f"layout={layout!r}"), 128, layout)
    assert got[0] == pytest.approx(1.0, abs=1e-15)
    known = {20: 0.0562341288, 33: 0.0054122768, 46: 0.0003333804, 63: 0.0000288695}
    assert [got[i] for i in known] == pytest.approx(list(known.values()), rel=1e-7, abs=1e-10)


def test_the_ramp_runs_from_plane_20_to_plane_46() -> None:
    """32 turns fall on plane 20.944 and one turn on 45.027; both ends are rounded outwards."""
    got, _ = planes(yarn(128), 128)
    ratio = [w / 10_000 ** (-2 * i / 128) for i, w in enumerate(got)]
    assert ratio[:21] == pytest.approx([1.0] * 21, abs=1e-12)
    assert ratio[46:] == pytest.approx([0.25] * 18, abs=1e-12)
    assert all(0.25 < one < 1 for one in ratio[21:46])


SETTINGS = [(128, 10_000, 4, 4096, 32, 1), (64, 500_000, 32, 8192, 32, 1), (16, 1000, 2.5, 64, 16, 2)]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(("ramp", "formula"), [("index", by_index), ("turns", by_turns)])
def test_frequencies_are_those_of_the_formula(setting: tuple[float, ...], ramp: str, formula: object) -> None:
    size, base, factor, length, fast, slow = setting
    options = f"ramp={ramp!r}, base={base}, factor={factor}, original={length}, fast={fast}, slow={slow}"
    got, _ = planes(yarn(int(size), options, train_length=7), int(size))
    assert callable(formula)
    assert got == pytest.approx(formula(*setting), rel=1e-12)


@pytest.mark.parametrize(("factor", "apart"), [(4, 0.42), (32, 0.75)])
def test_the_two_ramps_differ_by_as_much_as_is_known(factor: float, apart: float) -> None:
    index, turns = (planes(yarn(128, f"factor={factor}, ramp={ramp!r}"), 128)[0] for ramp in ("index", "turns"))
    assert max(abs(a - b) / max(a, b) for a, b in zip(index, turns, strict=True)) == pytest.approx(apart, abs=0.01)


@pytest.mark.parametrize(
    ("options", "scale"),
    [("", 1.1386294361119891), ("factor=1", 1.0), ("factor=32", 1 + 0.1 * math.log(32)), ("factor=32, scale=1", 1.0)],
)
def test_queries_and_keys_grow_by_a_scale_that_can_be_stated(options: str, scale: float) -> None:
    encoding = yarn(16, options)
    assert planes(encoding, 16)[1] == pytest.approx([scale] * 8, abs=1e-12)
    assert ("isometric" in encoding.laws) == (scale == 1)


def test_the_factor_is_the_stated_one_whatever_lengths_are_asked_for() -> None:
    long = yarn(128, "factor=4, original=4096", train_length=32_768, longest=32_768)
    assert planes(long, 128) == planes(yarn(128), 128)


def test_a_length_too_short_for_one_turn_interpolates_all_planes() -> None:
    got, _ = planes(yarn(16, "original=4"), 16)
    assert got == pytest.approx([10_000 ** (-2 * i / 16) / 4 for i in range(8)], rel=1e-12)


@pytest.mark.parametrize(("tokens", "factor"), [(5, 1), (12, 1), (24, 2), (30, 2.5)])
def test_without_a_factor_it_follows_the_length_of_the_text(tokens: int, factor: float) -> None:
    x = torch.randn(1, 1, tokens, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    places = torch.arange(tokens)
    at = At(x[:, 0], places, places, uniform=True)
    turned = [
        yarn(16, options, train_length=12).rotate(x, x, None, at)[0] for options in ("factor=None", f"factor={factor}")
    ]
    torch.testing.assert_close(turned[0], turned[1])
    if factor == 1:
        rope = build("rope", Site(16, 1, 1, 16, 12, 64))
        torch.testing.assert_close(turned[0], rope.rotate(x, x, None, at)[0])


@pytest.mark.parametrize("options", ["fast=1, slow=32", "slow=0", "factor=0.5", "original=0", "base=1"])
def test_ends_in_the_wrong_order_and_impossible_options_are_unsupported(options: str) -> None:
    with pytest.raises(Unsupported, match="fast > slow"):
        yarn(16, options)


def test_an_odd_head_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="even"):
        yarn(7)
