"""LongRoPE against plane-by-plane factors in float64, on both sides of its switch."""

import math

import pytest
import torch

from grape_bench.encodings import At, Encoding, Site, build
from grape_bench.errors import Unsupported

SHORT, LONG = (1.0, 1.1, 1.5, 2.0), (1.0, 3.0, 5.5, 8.0)


def longrope(options: str = "", *, size: int = 8, train_length: int = 64) -> Encoding:
    return build(f"longrope({options})", Site(size, 1, 1, size, train_length, 64))


def planes(encoding: Encoding, keys: int, layout: str = "interleaved") -> tuple[list[float], list[float]]:
    """Radians a token of each of 4 planes and its scale, in a text of so many keys."""
    firsts, seconds = ([0, 2, 4, 6], [1, 3, 5, 7]) if layout == "interleaved" else ([0, 1, 2, 3], [4, 5, 6, 7])
    x = torch.zeros(1, 1, keys, 8, dtype=torch.float64)
    x[..., firsts] = 1.0
    q, k = encoding.rotate(x, x, None, At(x, torch.arange(keys), torch.arange(keys), uniform=True))
    assert torch.equal(q, k)
    one, other = q[0, 0, 1, firsts], q[0, 0, 1, seconds]
    return torch.atan2(other, one).tolist(), torch.hypot(one, other).tolist()


@pytest.mark.parametrize("layout", ["interleaved", "half"])
@pytest.mark.parametrize(("keys", "factors"), [(63, SHORT), (64, SHORT), (65, LONG)])
def test_factors_are_switched_beyond_the_training_length(layout: str, keys: int, factors: tuple[float, ...]) -> None:
    encoding = longrope(f"short={SHORT}, long={LONG}, base=100, layout={layout!r}")
    expected = [100 ** (-2 * i / 8) / factor for i, factor in enumerate(factors)]
    assert planes(encoding, keys, layout)[0] == pytest.approx(expected, rel=1e-11)


def test_the_original_length_can_be_stated() -> None:
    stated = longrope(f"short={SHORT}, long={LONG}, original=8", train_length=999)
    assert planes(stated, 9)[0] == pytest.approx(planes(longrope(f"long={LONG}"), 65)[0], rel=1e-12)
    assert planes(stated, 8)[0] == pytest.approx(planes(longrope(f"short={SHORT}"), 8)[0], rel=1e-12)


def test_without_a_search_long_texts_have_the_factors_of_ntk() -> None:
    plain, slow = planes(longrope(), 64)[0], planes(longrope("factor=8"), 65)[0]
    assert plain == pytest.approx([10_000 ** (-2 * i / 8) for i in range(4)], rel=1e-11)
    assert [a / b for a, b in zip(plain, slow, strict=True)] == pytest.approx([1, 2, 4, 8], rel=1e-11)


@pytest.mark.parametrize(("factor", "length"), [(4, 64), (32, 4096), (1, 64)])
def test_the_scale_is_the_same_on_both_sides(factor: float, length: int) -> None:
    """sqrt(1 + ln 32 / ln 4096) = 1.19."""
    encoding = longrope(f"factor={factor}, original={length}", train_length=8)
    scale = math.sqrt(1 + math.log(factor) / math.log(length))
    for keys in (8, length + 1):
        assert planes(encoding, keys)[1] == pytest.approx([scale] * 4, abs=1e-12)
    assert longrope().laws == ("relative",)


def test_it_promises_no_prefix_and_no_decoding() -> None:
    encoding = longrope()
    assert encoding.breaks == ("prefix", "streaming")
    assert "training length" in encoding.not_streaming


@pytest.mark.parametrize(
    "options",
    ["short=()", "short=(1, 2)", "long=(1, 1, 1, 1, 1)", "long=(1, 1, 0, 1)", "factor=0.5", "original=1", "base=0"],
)
def test_wrong_factors_and_lengths_are_unsupported(options: str) -> None:
    with pytest.raises(Unsupported):
        longrope(options)


@pytest.mark.parametrize("size", [2, 7])
def test_a_head_of_one_plane_or_of_no_pairs_is_unsupported(size: int) -> None:
    with pytest.raises(Unsupported):
        longrope(size=size)
