"""Interpolated against encodings that are told the squeezed places outright."""

import pytest
import torch
from torch import Tensor

from grape_bench.attention import attend
from grape_bench.backends import Mask, load
from grape_bench.encodings import At, Encoding, Site, build
from grape_bench.errors import Unsupported

SITE = Site(16, 2, 2, 8, 12, 48)


def draw(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


def made(text: str) -> Encoding:
    encoding = build(text, SITE).double()
    with torch.no_grad():
        for one in encoding.parameters():
            one.copy_(draw(*one.shape))
    return encoding


def outputs(text: str, places: Tensor, rows: slice = slice(None)) -> Tensor:
    """(1, H, T, D) of a model's layer whose tokens are told these places, with `embed` and all."""
    encoding, count = made(text), len(places)
    x = encoding.embed(draw(1, count, 16), places)
    q, k, v = x.unflatten(-1, (2, 8)).transpose(1, 2), 2 * x.unflatten(-1, (2, 8)).transpose(1, 2), draw(1, 2, count, 8)
    at = At(x, places[rows], places, uniform=False)
    return attend(encoding, load("eager"), (q[:, :, rows], k, v), at, Mask())


TEXTS = ["rope", "sinusoidal", "clamp", "alibi", "rope + log", "t5"]


@pytest.mark.parametrize("text", TEXTS)
def test_up_to_the_training_length_nothing_changes(text: str) -> None:
    for count in (1, 7, 12):
        places = torch.arange(count)
        torch.testing.assert_close(outputs(f"interpolated({text})", places), outputs(text, places), rtol=0, atol=0)


@pytest.mark.parametrize("text", TEXTS)
def test_a_longer_text_stands_within_the_training_length(text: str) -> None:
    told = torch.tensor([index / 2 for index in range(24)], dtype=torch.float64)
    assert told.max() < 12
    expected = outputs(text, told)
    torch.testing.assert_close(outputs(f"interpolated({text})", torch.arange(24)), expected)
    torch.testing.assert_close(
        outputs(f"interpolated({text})", torch.arange(24), slice(-4, None)), expected[:, :, -4:]
    )  # the rows of a tail see the length of the whole


def test_it_is_pi_at_the_factor_of_the_length() -> None:
    places = torch.arange(24)
    torch.testing.assert_close(outputs("interpolated(rope)", places), outputs("pi(factor=2.0)", places))


def test_the_original_length_can_be_stated() -> None:
    places = torch.arange(24)
    torch.testing.assert_close(outputs("interpolated(rope, original=6)", places), outputs("pi(factor=4.0)", places))
    with pytest.raises(Unsupported, match="at least 1 token"):
        made("interpolated(rope, original=0)")


@pytest.mark.parametrize("inner", ["learned", "randomized(rope)"])
def test_who_stands_on_whole_places_is_refused(inner: str) -> None:
    with pytest.raises(Unsupported, match="interpolated moves tokens to real positions"):
        made(f"interpolated({inner})")
