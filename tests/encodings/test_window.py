"""Window against attention to the keys within reach alone."""

import math

import pytest
import torch

from grape_bench.attention import attend
from grape_bench.backends import Mask
from grape_bench.backends.eager import Eager
from grape_bench.encodings import At, Encoding, Site, build
from grape_bench.errors import Unsupported

H, D = 2, 4


def window(options: str = "tokens=3", *, causal: bool = True) -> Encoding:
    return build(f"window({options})", Site(H * D, H, H, D, 5, 64, causal=causal))


@pytest.mark.parametrize("uniform", [True, False])
def test_keys_within_reach_have_no_bias_and_others_are_hidden(uniform: bool) -> None:
    q, at = torch.zeros(1, H, 8, D, dtype=torch.float64), torch.arange(8) + 40
    bias = window(causal=False).bias(q, None, At(q, at, at, uniform))
    assert bias is not None
    expected = [[0.0 if abs(i - j) < 3 else -math.inf for j in range(8)] for i in range(8)]
    assert bias.tile()[0].tolist() == [expected] * H
    assert bias.tile().dtype == torch.float64


def test_a_decoder_sees_the_last_tokens_with_itself() -> None:
    generator, at = torch.Generator().manual_seed(0), torch.arange(9)
    q, k, v = torch.randn(3, 2, H, 9, D, generator=generator, dtype=torch.float64)
    got = attend(window(), Eager(), (q, k, v), At(q, at, at, uniform=True), Mask(causal=True))
    for i in range(9):
        near = slice(max(0, i - 2), i + 1)
        scores = torch.einsum("bhd,bhsd->bhs", q[:, :, i], k[:, :, near]) / math.sqrt(D)
        expected = torch.einsum("bhs,bhsd->bhd", scores.softmax(dim=-1), v[:, :, near])
        torch.testing.assert_close(got[:, :, i], expected, rtol=0, atol=1e-12)


def test_the_window_is_the_training_length_by_default() -> None:
    """So that training sees no window."""
    q, at = torch.zeros(1, H, 7, D), torch.arange(7)
    bias = window("").bias(q, None, At(q, at, at, uniform=True))
    assert bias is not None
    seen = bias.tile()[0, 0].isfinite()
    assert seen[:5, :5].all()
    assert seen[6].tolist() == [False, False, True, True, True, True, True]


def test_added_to_another_encoding_it_cuts_that_one_alone_short() -> None:
    q, at = torch.randn(1, H, 7, D, generator=torch.Generator().manual_seed(0)), torch.arange(7)
    both = build("alibi + window(tokens=3)", Site(H * D, H, H, D, 5, 64, causal=True))
    alone = build("alibi", Site(H * D, H, H, D, 5, 64, causal=True))
    call = At(q, at, at, uniform=True)
    sums, plain = (one.bias(q, None, call).tile()[0] for one in (both, alone))  # type: ignore[union-attr]
    reach = (at[:, None] - at).abs() < 3
    torch.testing.assert_close(sums[:, reach], plain[:, reach])
    assert sums[:, ~reach].isinf().all()


@pytest.mark.parametrize("tokens", [0, -2])
def test_a_window_that_hides_the_query_itself_is_unsupported(tokens: int) -> None:
    with pytest.raises(Unsupported, match="at least 1"):
        window(f"tokens={tokens}")
