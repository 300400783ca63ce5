"""ALiBi, for any number of heads."""

from collections.abc import Callable

import pytest
import torch
from ours import installed, normal, tile
from torch import Tensor

N = 64
# The published row of a power of two; other numbers of heads take the row below and every second one of the row above.
SLOPES = {
    6: [2.0**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3],
    8: [2.0**-n for n in range(1, 9)],
    12: [*(2.0**-n for n in range(1, 9)), 2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5],
}


def ours(heads: int, length: int = N, form: str = "causal") -> Tensor:
    """(H, T, T)"""
    encoding = installed(f"alibi(form={form!r})", heads, 4, causal=form == "causal", length=length)
    q, x = torch.zeros(1, heads, length, 4), torch.zeros(1, length, 4 * heads)
    return tile(encoding, q, q, x)[0]


def loop(heads: int, length: int = N) -> Tensor:
    rows = [[[-m * abs(i - j) for j in range(length)] for i in range(length)] for m in SLOPES[heads]]
    return torch.tensor(rows, dtype=torch.float64)


def shifted(keys: Tensor) -> Tensor:
    """Biases (H, 1, S) that softmax takes for (H, T, S) with zeros at each query's own key, future keys left out."""
    whole = keys.double() - keys.double().transpose(1, 2)
    return past(whole)


def past(bias: Tensor) -> Tensor:
    return bias.masked_fill(torch.ones(bias.shape[-2:], dtype=torch.bool).triu(1), 0.0)


def bloom(heads: int, length: int) -> Tensor:
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    return build_alibi_tensor(torch.ones(1, length, dtype=torch.long), heads, torch.float32)


def mpt(heads: int, length: int) -> Tensor:
    from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor

    return build_mpt_alibi_tensor(heads, length)


def falcon(heads: int, length: int) -> Tensor:
    from transformers.models.falcon.modeling_falcon import build_alibi_tensor

    return build_alibi_tensor(torch.ones(1, length, dtype=torch.long), heads, torch.float32)


@pytest.mark.parametrize("heads", SLOPES)
@pytest.mark.parametrize("theirs", [bloom, mpt])
def test_biases_of_keys_are_ours_up_to_a_constant_of_each_query(theirs: Callable, heads: int, meet) -> None:
    got, expected = past(ours(heads)), past(loop(heads))
    meet.agrees("alibi", f"transformers {theirs.__name__.upper()}", shifted(theirs(heads, N)), got, expected)


@pytest.mark.parametrize("heads", SLOPES)
def test_so_their_attention_is_ours(heads: int, meet) -> None:
    """BLOOM counts from the first key and MPT from the last one, which softmax does not see."""
    scores = normal(heads, N, N).double().masked_fill(torch.ones(N, N, dtype=torch.bool).triu(1), float("-inf"))
    got, expected = (scores + ours(heads)).softmax(-1), (scores + loop(heads)).softmax(-1)
    for theirs in (bloom, mpt):
        weights = (scores.float() + theirs(heads, N)).softmax(-1)
        meet.agrees("alibi, weights", f"transformers {theirs.__name__.upper()}", weights, got, expected)


def test_falcon_multiplies_in_bfloat16(meet) -> None:
    """At 2048 tokens its biases are wrong by up to 2, on its own terms: a checkpoint was trained so."""
    length = 2048
    place = torch.arange(length, dtype=torch.float64)
    slopes = torch.tensor(SLOPES[8], dtype=torch.float64)[:, None]
    got = ours(8, length)[:, -1] + slopes * (length - 1)  # of the last query, counted from the first key as Falcon does
    theirs, fault = falcon(8, length)[:, 0], "product rounded to bfloat16"
    meet.is_wrong("alibi", "transformers Falcon", theirs, got, slopes * place, by=2.0, fault=fault)


@pytest.mark.parametrize("heads", SLOPES)
def test_the_symmetric_form_is_that_of_x_transformers(heads: int, meet) -> None:
    from x_transformers.x_transformers import AlibiPositionalBias

    bias = AlibiPositionalBias(heads)
    meet.agrees("alibi, symmetric", "x-transformers", bias(N, N), ours(heads, form="symmetric"), loop(heads))
    assert bias(1, 4)[0].tolist() == ours(heads, 4, "symmetric")[0, -1:].tolist()  # after a longer call


def test_attention_gym_has_the_official_slopes_for_powers_of_two(meet) -> None:
    meet.agrees("alibi", "attn-gym", attention_gym(8), past(ours(8)), past(loop(8)))


def test_attention_gym_has_one_plain_row_of_slopes_for_any_number_of_heads(meet) -> None:
    """Slopes 2^(-8h/H) of 12 heads: the last one is 1/256, and the official one .0884."""
    theirs, got, expected = (one[:, 1, 0] for one in (attention_gym(12), past(ours(12)), past(loop(12))))
    assert (theirs[-1].item(), got[-1].item()) == (-(2.0**-8), pytest.approx(-0.08838834764))
    meet.is_wrong("alibi", "attn-gym", theirs, got, expected, by=0.6915, fault="plain slopes, H no power of 2")


def attention_gym(heads: int) -> Tensor:
    from attn_gym.mods.alibi import generate_alibi_bias

    h, i, j = torch.meshgrid(torch.arange(heads), torch.arange(N), torch.arange(N), indexing="ij")
    return past(generate_alibi_bias(heads)(torch.zeros(()), None, h, i, j))
