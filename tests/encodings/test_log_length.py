"""Log length against attention written out with a temperature."""

import math

import pytest
import torch
from torch import Tensor

from grape_bench.attention import attend
from grape_bench.backends import Mask, load
from grape_bench.encodings import At, Site, build
from grape_bench.errors import Unsupported


def outputs(text: str, count: int, *, causal: bool, factor: float = 1.0, rows: slice = slice(None)) -> Tensor:
    encoding = build(text, Site(16, 2, 2, 8, 12, 96, causal=causal)).double()
    q, k, v = torch.randn(3, 1, 2, count, 8, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    places = torch.arange(count)
    at = At(torch.zeros(1, count, 16), places[rows], places, uniform=True)
    return attend(encoding, load("eager"), (factor * q[:, :, rows], k, v), at, Mask(causal))


@pytest.mark.parametrize("count", [3, 12, 48])
def test_an_encoder_is_sharper_by_the_logarithm_of_its_length(count: int) -> None:
    factor = math.log(count) / math.log(12)
    expected = outputs("rope", count, causal=False, factor=factor)
    torch.testing.assert_close(outputs("rope + log_length", count, causal=False), expected)
    torch.testing.assert_close(
        outputs("rope + log_length", count, causal=False, rows=slice(-2, None)), expected[:, :, -2:]
    )


@pytest.mark.parametrize("count", [3, 12, 48])
def test_texts_up_to_the_training_length_can_be_left_alone(count: int) -> None:
    factor = max(1.0, math.log(count) / math.log(12))
    expected = outputs("rope", count, causal=False, factor=factor)
    torch.testing.assert_close(outputs("rope + log_length(beyond=True)", count, causal=False), expected)


def test_a_query_of_a_decoder_counts_the_tokens_up_to_itself() -> None:
    got = outputs("rope + log_length", 30, causal=True)
    for row in range(30):
        expected = outputs("rope", 30, causal=True, factor=math.log(row + 1) / math.log(12))[:, :, row]
        torch.testing.assert_close(got[:, :, row], expected)


def test_tokens_are_counted_from_position_0() -> None:
    encoding = build("log_length", Site(16, 2, 2, 8, 12, 96)).double()
    q = torch.ones(2, 2, 5, 8, dtype=torch.float64)
    places = torch.tensor([[-3, -2, -1, 0, 1], [0, 1, 2, 3, 4]])  # the first sequence is padded on the left
    turned, _ = encoding.rotate(q, q, None, At(torch.zeros(2, 5, 16), places, places, uniform=False))
    expected = torch.tensor([math.log(2), math.log(5)], dtype=torch.float64) / math.log(12)
    torch.testing.assert_close(turned[:, 0, :, 0], expected[:, None].expand(2, 5))


def test_a_training_length_of_one_has_no_logarithm() -> None:
    with pytest.raises(Unsupported, match="at least 2 tokens"):
        build("log_length", Site(16, 2, 2, 8, 1, 8))
