"""FoX against sums of log gates written out, and against golden vectors."""

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

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
T = 16
PAST = torch.ones(T, T, dtype=torch.bool).tril()


def golden(name: str) -> dict[str, Tensor]:
    with np.load(GOLDEN / f"{name}.npz") as file:
        return {key: torch.from_numpy(file[key]) for key in file}


def fox(*, heads: int = 2, kv_heads: int = 2, width: int = 2, text: str = "fox") -> Encoding:
    return build(text, Site(width, heads, kv_heads, 8, 64, 64, causal=True)).double()


def gated(logits: Tensor) -> tuple[Encoding, At]:
    """An encoding and a call in which gate logits (1, H, T) are what its inputs hold."""
    encoding, at = fox(), torch.arange(logits.shape[-1])
    with torch.no_grad():
        encoding.weight.copy_(torch.eye(2))
    return encoding, At(logits.transpose(1, 2), at, at, uniform=True)


def bias(encoding: Encoding, q: Tensor, at: At) -> LowRank:
    k = q[:, :: encoding.heads // encoding.kv_heads]
    features, _ = encoding.state(k, at, None)
    found = encoding.bias(q, features, at)
    assert isinstance(found, LowRank)
    return found


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_the_bias_is_the_sum_of_log_gates_behind_the_key(kv_heads: int) -> None:
    """A sum over channels in place of tokens, or one that leaves the query's own gate out, would show here."""
    generator = torch.Generator().manual_seed(0)
    weight, start, x, q = (
        torch.randn(shape, generator=generator, dtype=torch.float64)
        for shape in ((4, 5), (4,), (2, 7, 5), (2, 4, 7, 8))
    )
    encoding = fox(heads=4, kv_heads=kv_heads, width=5)
    with torch.no_grad():
        encoding.weight.copy_(weight)
        encoding.start.copy_(start)
    got = bias(encoding, q, At(x, torch.arange(7), torch.arange(7), uniform=True)).tile()
    for b in range(2):
        for h in range(4):
            for i in range(7):
                for j in range(i + 1):
                    logits = [(weight[h] @ x[b, t] + start[h]).item() for t in range(j + 1, i + 1)]
                    expected = sum(-math.log1p(math.exp(-z)) for z in logits)
                    assert got[b, h, i, j].item() == pytest.approx(expected, abs=1e-12)


def test_a_token_moves_only_scores_of_keys_before_it_and_queries_from_it_on() -> None:
    logits = torch.randn(1, 2, T, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    other = logits.clone()
    other[:, :, 5] += 1.0
    q, tiles = torch.zeros(1, 2, T, 8, dtype=torch.float64), []
    for one in (logits, other):
        encoding, at = gated(one)
        tiles.append(bias(encoding, q, at).tile())
    changed = ((tiles[1] - tiles[0]).abs() > 1e-9) & PAST
    expected = (torch.arange(T)[:, None] >= 5) & (torch.arange(T) < 5)
    assert (changed == expected).all()


def test_constant_gates_make_it_alibi() -> None:
    g = golden("fox")
    encoding, at = gated(g["gate_logit_alibi"])
    alibi = golden("alibi")["bias"]
    torch.testing.assert_close(bias(encoding, g["q"], at).tile()[0][:, PAST], alibi[:, PAST], rtol=0, atol=1e-10)


def test_golden_vectors() -> None:
    g = golden("fox")
    encoding, at = gated(g["gate_logit"])
    features, total = encoding.state(g["k"], at, None)
    torch.testing.assert_close(features[..., 0], g["cum_inclusive"], rtol=0, atol=1e-10)
    torch.testing.assert_close(total[:, 0], g["cum_inclusive"][..., -1], rtol=0, atol=1e-10)
    found = bias(encoding, g["q"], at).tile().masked_fill(~PAST, 0.0)
    torch.testing.assert_close(found, g["D_bias"], rtol=0, atol=1e-10)
    v = torch.eye(T, dtype=torch.float64).expand(1, 2, -1, -1)  # outputs are then the weights themselves
    weights = attend(encoding, Eager(), (g["q"], g["k"], v), at, Mask(causal=True))
    torch.testing.assert_close(weights, g["logits"].softmax(dim=-1), rtol=0, atol=1e-10)


def test_it_lifts_to_one_channel_a_query_head_of_the_group() -> None:
    x, at = torch.randn(1, 5, 2, dtype=torch.float64), torch.arange(5)
    for kv_heads in (1, 2, 4):
        encoding = fox(heads=4, kv_heads=kv_heads)
        u, v = bias(encoding, torch.zeros(1, 4, 5, 8).double(), At(x, at, at, uniform=True)).lift()
        assert u.shape[-1] == v.shape[-1] == encoding.features == 4 // kv_heads


@pytest.mark.parametrize(("start", "gate"), [(0.0, 0.5), (5.0, 0.9933071490757153)])
def test_gates_start_near_the_sigmoid_of_the_start(start: float, gate: float) -> None:
    encoding = fox(heads=4, width=400, text=f"fox(start={start})").float()
    encoding.reset(torch.Generator().manual_seed(0))
    assert encoding.start.sigmoid().tolist() == pytest.approx([gate] * 4, abs=1e-6)
    assert encoding.weight.std().item() == pytest.approx(0.5 / 20, rel=0.1)


def test_gates_of_a_model_in_bfloat16_are_summed_in_float32() -> None:
    """A sum in bfloat16 stands still at 256 when steps are below one."""
    encoding = fox().to(torch.bfloat16)
    at = torch.arange(2000)
    x = torch.zeros(1, 2000, 2, dtype=torch.bfloat16)
    features, total = encoding.state(x[:, None], At(x, at, at, uniform=True), None)
    assert features.dtype == torch.float32
    assert total[0, 0].tolist() == pytest.approx([2000 * math.log(0.5)] * 2, rel=1e-5)
