"""Llama 3's scaling against published ratios, and against its formula by wavelengths."""

import math

import pytest
import torch

from grape_bench.encodings import At, Encoding, Site, build
from grape_bench.errors import Unsupported

LLAMA = "base=5e5, original=8192, factor=8"


def llama3(size: int, options: str = "") -> Encoding:
    return build(f"llama3({options})", Site(size, 1, 1, size, 64, 64))


def ratios(encoding: Encoding, size: int, base: float, layout: str = "interleaved") -> list[float]:
    """Speed of each plane over that of RoPE, read off where the first axis of each stands at position 1."""
    firsts = [2 * i if layout == "interleaved" else i for i in range(size // 2)]
    seconds = [a + 1 if layout == "interleaved" else a + size // 2 for a in firsts]
    x = torch.zeros(1, 1, 1, size, dtype=torch.float64)
    x[..., firsts] = 1.0
    q, _ = encoding.rotate(x, x, None, At(x, torch.tensor([1]), torch.tensor([1]), uniform=True))
    speeds = torch.atan2(q[0, 0, 0, seconds], q[0, 0, 0, firsts]).tolist()
    return [w * base ** (2 * i / size) for i, w in enumerate(speeds)]


@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_ratios_are_those_of_llama_3_1(layout: str) -> None:
    """29 planes untouched, 6 blended, 29 eight times slower."""
    got = ratios(llama3(128, f"{LLAMA}, layout={layout!r}"), 128, 5e5, layout)
    middle = [1, 0.8281684, 0.6437432, 0.4935071, 0.3711222, 0.2714254, 0.1902107, 0.125, 0.125]
    assert got[28:37] == pytest.approx(middle, abs=1e-7)
    assert got[:29] == pytest.approx([1.0] * 29, abs=1e-12)
    assert got[35:] == pytest.approx([0.125] * 29, abs=1e-12)


def test_the_factor_of_the_small_models_is_32() -> None:
    """A factor that is not read from the options degrades texts from 80 000 tokens on."""
    got = ratios(llama3(64, "base=5e5, original=8192, factor=32"), 64, 5e5)
    assert got[-1] == pytest.approx(1 / 32, rel=1e-12)


@pytest.mark.parametrize(("low", "high"), [(1, 4), (2, 16)])
def test_planes_are_told_apart_by_their_wavelengths(low: float, high: float) -> None:
    length, factor, base, size = 64, 4.0, 10_000, 16
    expected = []
    for i in range(size // 2):
        wavelength = 2 * math.pi * base ** (2 * i / size)
        if wavelength < length / high:
            expected.append(1.0)
        elif wavelength > length / low:
            expected.append(1 / factor)
        else:
            smooth = (length / wavelength - low) / (high - low)
            expected.append((1 - smooth) / factor + smooth)
    assert ratios(llama3(size, f"low={low}, high={high}"), size, base) == pytest.approx(expected, rel=1e-12)
    assert len(set(expected)) > 2


@pytest.mark.parametrize("options", ["factor=0.5", "low=4, high=4", "original=0"])
def test_impossible_options_are_unsupported(options: str) -> None:
    with pytest.raises(Unsupported, match="llama3"):
        llama3(8, options)


def test_an_odd_head_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="even"):
        llama3(7)
