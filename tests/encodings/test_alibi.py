"""ALiBi against the formula number by number in float64, published slopes, and golden vectors."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from grape_bench.attention import attend
from grape_bench.backends import Mask
from grape_bench.backends.eager import Eager
from grape_bench.bias import LowRank
from grape_bench.encodings import At, Encoding, Site, build
from grape_bench.errors import Unsupported

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
# Powers of two are a geometric row; other numbers of heads take the row below, and every second one of the row above.
OFFICIAL = {
    1: [2**-8],
    2: [2**-4, 2**-8],
    6: [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125],
    8: [0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625],
    12: [*(2.0**-n for n in range(1, 9)), 2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5],
}


def alibi(heads: int, *, causal: bool = True, form: str = "auto") -> Encoding:
    return build(f"alibi(form={form!r})", Site(heads * 4, heads, heads, 4, 64, 64, causal=causal))


def tile(encoding: Encoding, q_pos: Tensor, k_pos: Tensor, dtype: torch.dtype = torch.float64) -> Tensor:
    """(H, T, S)"""
    q = torch.zeros(1, encoding.heads, len(q_pos), 4, dtype=dtype)
    bias = encoding.bias(q, None, At(q, q_pos, k_pos, uniform=False))
    assert bias is not None
    return bias.tile()[0]


def golden() -> dict[str, Tensor]:
    with np.load(GOLDEN / "alibi.npz") as file:
        return {key: torch.from_numpy(file[key]) for key in file}


@pytest.mark.parametrize("heads", sorted(OFFICIAL))
def test_slopes_are_the_official_ones(heads: int) -> None:
    step = tile(alibi(heads), torch.tensor([1]), torch.tensor([0, 1]))
    assert (step[:, 0, 1] - step[:, 0, 0]).tolist() == pytest.approx(OFFICIAL[heads], abs=1e-12)


@pytest.mark.parametrize("heads", [1, 2, 3, 4, 6, 8, 10, 12, 16])
def test_slopes_are_the_golden_ones(heads: int) -> None:
    step = tile(alibi(heads), torch.tensor([1]), torch.tensor([0, 1]))
    torch.testing.assert_close(step[:, 0, 1] - step[:, 0, 0], golden()[f"slopes_H{heads}"], rtol=0, atol=1e-12)


def test_a_far_key_loses_by_slope_times_distance() -> None:
    """Query 10, key 3, head 0 of 8: -3.5. A flipped sign would attend to far tokens."""
    for causal, form in ((True, "causal"), (False, "symmetric")):
        assert tile(alibi(8, causal=causal, form=form), torch.tensor([10]), torch.tensor([3]))[0].item() == -3.5


@pytest.mark.parametrize("heads", [2, 6])
def test_the_symmetric_form_falls_off_on_both_sides(heads: int) -> None:
    got = tile(alibi(heads, causal=False, form="symmetric"), torch.arange(5), torch.arange(5))
    expected = [[[-OFFICIAL[heads][h] * abs(i - j) for j in range(5)] for i in range(5)] for h in range(heads)]
    torch.testing.assert_close(got, torch.tensor(expected, dtype=torch.float64))


def test_a_shorter_call_after_a_longer_one_is_not_a_slice_of_it() -> None:
    encoding = alibi(8, causal=False, form="symmetric")
    tile(encoding, torch.arange(6), torch.arange(6))
    assert tile(encoding, torch.tensor([3]), torch.arange(4))[0].tolist() == [[-1.5, -1.0, -0.5, 0.0]]


def test_the_split_form_shows_even_heads_the_past_and_odd_heads_the_future() -> None:
    got = tile(alibi(6, causal=False), torch.arange(5), torch.arange(5))
    for h in range(6):
        for i in range(5):
            for j in range(5):
                seen = j <= i if h % 2 == 0 else j >= i
                expected = -OFFICIAL[6][h] * abs(i - j) if seen else -math.inf
                assert got[h, i, j].item() == pytest.approx(expected, abs=1e-12)


def test_an_encoder_takes_the_split_form_and_a_decoder_the_causal_one() -> None:
    assert (alibi(4, causal=False).form, alibi(4).form) == ("split", "causal")


def test_the_causal_form_is_unsupported_in_an_encoder() -> None:
    with pytest.raises(Unsupported, match="bidirectional"):
        alibi(4, causal=False, form="causal")


def test_the_causal_form_is_its_formula_on_the_past() -> None:
    got = tile(alibi(12), torch.arange(7) + 90, torch.arange(7) + 90)
    for h in range(12):
        for i in range(7):
            for j in range(i + 1):
                assert got[h, i, j].item() == pytest.approx(-OFFICIAL[12][h] * (i - j), abs=1e-12)


def test_the_causal_form_lifts_to_one_channel() -> None:
    q, at = torch.zeros(1, 8, 9, 4, dtype=torch.float64), torch.arange(9)
    bias = alibi(8).bias(q, None, At(q, at, at, uniform=True))
    assert isinstance(bias, LowRank)
    u, v = bias.lift()
    assert u.shape[-1] == v.shape[-1] == 1
    rest = bias.tile() - u @ v.transpose(-1, -2)
    torch.testing.assert_close(rest, rest[..., :1].expand_as(rest), rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("length", [512, 2048, 8192, 65_536])
def test_the_last_64_keys_are_told_apart_in_every_dtype(length: int, dtype: torch.dtype) -> None:
    """Biases of absolute keys in bfloat16 keep 33, 9, 3 and 1 of 64."""
    got = tile(alibi(8), torch.tensor([length - 1]), torch.arange(length - 64, length), dtype)
    for h in range(8):
        assert len(set(got[h, 0].tolist())) == 64


@pytest.mark.parametrize("sizes", [(3, 8), (8, 3), (1, 5)])
@pytest.mark.parametrize("form", ["causal", "symmetric"])
def test_distances_are_those_of_positions_however_many_queries_and_keys_there_are(
    sizes: tuple[int, int], form: str
) -> None:
    """The last query stands at the last key: aligned bottom right."""
    T, S = sizes
    last = max(sizes)
    got = tile(alibi(8, causal=form == "causal", form=form), torch.arange(last - T, last), torch.arange(last - S, last))
    for h in range(8):
        for i in range(T):
            for j in range(S):
                far = (i - T) - (j - S)
                assert far < 0 or got[h, i, j].item() == pytest.approx(-OFFICIAL[8][h] * far, abs=1e-12)


@pytest.mark.parametrize("heads", [8, 12])
def test_weights_are_those_of_tables_that_count_from_the_first_or_the_last_key(heads: int) -> None:
    """BLOOM adds slope times key index, MPT slope times 1 - S .. 0: each is this bias up to a constant of the row."""
    generator, L = torch.Generator().manual_seed(0), 64
    scores = torch.randn(heads, L, generator=generator, dtype=torch.float64)
    got = (scores + tile(alibi(heads), torch.tensor([L - 1]), torch.arange(L))[:, 0]).softmax(dim=-1)
    slopes = torch.tensor(OFFICIAL[heads], dtype=torch.float64)[:, None]
    for counted in (torch.arange(L), torch.arange(1 - L, 1)):
        torch.testing.assert_close((scores + slopes * counted).softmax(dim=-1), got, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("form", "mirrored"), [("causal", False), ("symmetric", True), ("split", False)])
def test_only_the_symmetric_form_is_its_own_mirror_image(form: str, mirrored: bool) -> None:
    encoding = alibi(4, causal=form == "causal", form=form)
    assert ("reflection" in encoding.laws) == mirrored
    assert set(encoding.laws) >= {"relative", "unipotent", "path"}
    if form != "causal":
        here, there = (tile(encoding, at, at) for at in (torch.arange(6), -torch.arange(6)))
        assert torch.equal(here, there) == mirrored


def test_golden_vectors() -> None:
    g, at = golden(), torch.arange(16)
    past = torch.ones(16, 16, dtype=torch.bool).tril()
    encoding = build("alibi", Site(16, 2, 2, 8, 64, 64, causal=True))
    bias = encoding.bias(g["q"], None, At(g["q"], at, at, uniform=True))
    assert bias is not None
    torch.testing.assert_close(bias.tile()[0].masked_fill(~past, 0.0), g["bias"], rtol=0, atol=1e-10)
    v = torch.eye(16, dtype=torch.float64).expand(1, 2, -1, -1)  # outputs are then the weights themselves
    weights = attend(encoding, Eager(), (g["q"], g["k"], v), At(g["q"], at, at, uniform=True), Mask(causal=True))
    torch.testing.assert_close(weights, g["logits"].softmax(dim=-1), rtol=0, atol=1e-10)
