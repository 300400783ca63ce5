"""What every encoding promises in one layer, run over every file of the folder; a new file is found by itself.

Shapes: B batch, H heads, T queries, S keys, D head channels, C model channels.
"""

import copy
from dataclasses import replace

import pytest
import torch
from contract import REGISTRY, SITE, B, C, D, H, draw, every, scrambled
from torch import Tensor

from grape_bench.attention import attend
from grape_bench.backends import Mask
from grape_bench.backends.eager import Eager
from grape_bench.bias import Bias
from grape_bench.encodings import At, Encoding, Site, build

DTYPES = [torch.float32, torch.bfloat16, torch.float64]


def made(name: str, dtype: torch.dtype = torch.float64, site: Site = SITE) -> Encoding:
    encoding = scrambled(build(name, site)).to(dtype)
    assert isinstance(encoding, Encoding)
    return encoding


def position(start: float, count: int) -> Tensor:
    return torch.arange(start, start + count)


def outputs(
    encoding: Encoding,
    q_pos: Tensor,
    k_pos: Tensor,
    *,
    dtype: torch.dtype = torch.float64,
    mask: Mask | None = None,
    uniform: bool = False,
) -> Tensor:
    """One layer on random tokens, those of the queries being the last T of the S: (B, H, T, D).

    Positions reach it through every hook. Values are made before `embed`, so that position shows in weights alone.
    """
    T, S = q_pos.shape[-1], k_pos.shape[-1]
    tokens = draw(0, B, S, C).to(dtype)
    wq, wk, wv = ((draw(one, C, H * D) * C**-0.5).to(dtype) for one in (1, 2, 3))
    x = encoding.embed(tokens, k_pos)
    queries = encoding.embed(tokens[:, -T:], q_pos) @ wq
    q, k, v = (one.unflatten(-1, (-1, D)).transpose(1, 2) for one in (queries, x @ wk, tokens @ wv))
    return attend(encoding, Eager(), (q, k, v), At(x, q_pos, k_pos, uniform), mask or Mask(causal=True))


def tile(encoding: Encoding, q_pos: Tensor, k_pos: Tensor, dtype: torch.dtype) -> Tensor | None:
    """The bias of one layer on random inputs."""
    q, k = (draw(seed, B, H, n, D).to(dtype) for seed, n in ((1, q_pos.shape[-1]), (2, k_pos.shape[-1])))
    at = At(draw(3, B, k_pos.shape[-1], C).to(dtype), q_pos, k_pos, uniform=False)
    features, _ = encoding.state(k, at, None)
    bias: Bias | None = encoding.bias(q, features, at)
    if bias is None:
        return None
    scores = q.float() @ k.float().transpose(-1, -2) / D**0.5
    return bias.tile(scores=scores.to(torch.promote_types(dtype, torch.float32)) if bias.reads_scores else None)


@every
def test_the_docstring_names_its_source(name: str) -> None:
    doc = REGISTRY[name.split("(")[0]].load().__doc__
    assert "Source:" in doc
    assert "\n\n" in doc, "the idea in one sentence, then the rest"


@every
@pytest.mark.parametrize("dtype", DTYPES)
def test_hooks_keep_shape_and_dtype(name: str, dtype: torch.dtype) -> None:
    encoding, at = made(name, dtype), position(3, 6)
    x, q, k = draw(0, B, 6, C).to(dtype), draw(1, B, H, 6, D).to(dtype), draw(2, B, H, 6, D).to(dtype)
    call = At(x, at, at, uniform=True)
    features, _ = encoding.state(k, call, None)
    for got, given in (
        (encoding.embed(x, at), x),
        *zip(encoding.rotate(q, k, features, call), (q, k), strict=True),
    ):
        assert (got.shape, got.dtype) == (given.shape, dtype)
    if features is not None:
        assert features.shape == (B, H, 6, encoding.features)


@every
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_bias_is_at_least_float32(name: str, dtype: torch.dtype) -> None:
    got = tile(made(name, dtype), position(0, 5), position(0, 5), dtype)
    if got is not None:
        assert got.dtype == torch.promote_types(dtype, torch.float32)
        assert got.shape[0] in (1, B)
        assert got.shape[1:] == (H, 5, 5)


@every
def test_a_model_in_bfloat16_rounds_outputs_and_no_formula(name: str) -> None:
    """Also at position 16384, where a table in bfloat16 is wrong by as much as it can be."""
    half = made(name).to(torch.bfloat16)
    wide = copy.deepcopy(half).to(torch.float64)
    at = position(16_384, 6)
    x = draw(0, B, 6, C).to(torch.bfloat16)
    q, k = (draw(seed, B, H, 6, D).to(torch.bfloat16) for seed in (1, 2))

    def hooks(encoding: Encoding, dtype: torch.dtype) -> list[Tensor]:
        call = At(x.to(dtype), at, at, uniform=True)
        features, _ = encoding.state(k.to(dtype), call, None)
        return [encoding.embed(x.to(dtype), at), *encoding.rotate(q.to(dtype), k.to(dtype), features, call)]

    for got, exact in zip(hooks(half, torch.bfloat16), hooks(wide, torch.float64), strict=True):
        torch.testing.assert_close(got.double(), exact, rtol=2**-7, atol=1e-2)


@every
def test_scores_depend_on_distance_alone_exactly_where_declared(name: str) -> None:
    encoding, here, there = made(name), position(0, 9), position(1000, 9)
    with torch.no_grad():
        base = outputs(encoding, here, here)
        shifts = [outputs(encoding, there, there, uniform=flag) for flag in (False, True)]
    moved = max((one - base).abs().max().item() for one in shifts)
    if "relative" in encoding.laws:
        assert moved < 1e-9
    else:
        assert moved > 1e-3, "it is relative: declare it in `laws`"


@every
def test_rotation_keeps_norms_where_declared(name: str) -> None:
    encoding, at = made(name), position(5, 7)
    if "isometric" not in encoding.laws:
        pytest.skip("not declared")
    q, k = draw(1, B, H, 7, D), draw(2, B, H, 7, D)
    call = At(draw(0, B, 7, C), at, at, uniform=True)
    features, _ = encoding.state(k, call, None)
    for got, given in zip(encoding.rotate(q, k, features, call), (q, k), strict=True):
        torch.testing.assert_close(got.norm(dim=-1), given.norm(dim=-1), rtol=0, atol=1e-12)


@every
@torch.no_grad()
def test_a_later_query_is_that_row_of_the_whole(name: str) -> None:
    encoding, at = made(name), position(20, 9)
    whole = outputs(encoding, at, at, uniform=True)
    for flag in (True, False):
        last = outputs(encoding, at[-3:], at, uniform=flag)
        torch.testing.assert_close(last, whole[:, :, -3:], rtol=0, atol=1e-9)


@every
@torch.no_grad()
def test_positions_of_a_batch_are_those_of_each_sequence(name: str) -> None:
    encoding = made(name)
    at = torch.stack((position(0, 6), torch.tensor([2, 3, 7, 11, 12, 40])))
    both = outputs(encoding, at, at)
    for b in range(B):
        alone = outputs(encoding, at[b], at[b])
        torch.testing.assert_close(both[b], alone[b], rtol=0, atol=1e-9)


@every
@torch.no_grad()
def test_bfloat16_tells_position_256_from_257(name: str) -> None:
    encoding, keys = made(name), position(247, 10)
    queries = [torch.full((1,), one) for one in (256, 257)]

    def moved(dtype: torch.dtype) -> float:
        cast = copy.deepcopy(encoding).to(dtype)
        one, other = (outputs(cast, at, keys, dtype=dtype, mask=Mask()) for at in queries)
        return (one - other).abs().max().item()

    exact = moved(torch.float64)
    if exact < 1e-9:
        pytest.skip("it does not see positions")
    assert moved(torch.bfloat16) > exact / 2


@every
def test_two_instances_share_nothing(name: str) -> None:
    one, other = made(name), made(name)
    assert one is not other
    own = {tensor.data_ptr() for tensor in (*one.parameters(), *one.buffers()) if tensor.numel()}
    assert not own & {tensor.data_ptr() for tensor in (*other.parameters(), *other.buffers())}


@every
@torch.no_grad()
def test_a_call_leaves_no_trace_in_later_calls(name: str) -> None:
    """A cache keyed by half of its inputs would show here."""
    at, far = position(0, 6), position(64, 12)
    fresh = outputs(made(name), at, at)
    encoding = made(name)
    outputs(encoding, far, far)
    outputs(made(name, site=replace(SITE, train_length=64, longest=128)), far, far)
    outputs(copy.deepcopy(encoding).float(), at, at, dtype=torch.float32)
    torch.testing.assert_close(outputs(encoding, at, at), fresh, rtol=0, atol=0)


@every
@torch.no_grad()
def test_heads_and_sequences_do_not_mix(name: str) -> None:
    encoding, at = made(name), position(4, 6)
    q, k, v, x = draw(1, B, H, 6, D), draw(2, B, H, 6, D), draw(3, B, H, 6, D), draw(4, B, 6, C)

    def run(rows: slice, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        call = At(x[rows], at, at, uniform=True)
        return attend(encoding, Eager(), (q[rows], k[rows], v[rows]), call, Mask(causal=True))

    whole = run(slice(None), q, k, v)
    torch.testing.assert_close(run(slice(1, 2), q, k, v), whole[1:2], rtol=0, atol=1e-12)
    if "heads" in encoding.breaks:
        return
    others = [one.clone() for one in (q, k, v)]
    for one in others:
        one[:, 2] += 1.0
    changed = run(slice(None), *others)
    torch.testing.assert_close(changed[:, [0, 1, 3]], whole[:, [0, 1, 3]], rtol=0, atol=1e-12)
    assert (changed[:, 2] - whole[:, 2]).abs().max() > 1e-3


@every
@torch.no_grad()
def test_grouped_queries_are_heads_with_equal_keys(name: str) -> None:
    at, few = position(0, 6), made(name, site=replace(SITE, kv_heads=2))
    q, k, v, x = draw(1, B, H, 6, D), draw(2, B, 2, 6, D), draw(3, B, 2, 6, D), draw(4, B, 6, C)
    call = At(x, at, at, uniform=True)
    grouped = attend(few, Eager(), (q, k, v), call, Mask(causal=True))
    assert grouped.shape == (B, H, 6, D)
    many = made(name)
    if [one.shape for one in few.parameters()] != [one.shape for one in many.parameters()]:
        pytest.skip("its parameters are those of key heads")
    k, v = (one.repeat_interleave(2, dim=1) for one in (k, v))
    repeated = attend(many, Eager(), (q, k, v), call, Mask(causal=True))
    torch.testing.assert_close(grouped, repeated, rtol=0, atol=1e-12)
