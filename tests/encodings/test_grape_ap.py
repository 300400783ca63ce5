"""GRAPE-AP against sums along paths written out, and against golden vectors.

Golden probes turn by minus the angle in the half layout: they are ours at negative positions.
"""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from grape_bench.attention import attend
from grape_bench.backends import Mask
from grape_bench.backends.eager import Eager
from grape_bench.bias import Rowwise
from grape_bench.encodings import At, Encoding, Site, build
from grape_bench.errors import Unsupported

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
SLOPES = [2**-2, 2**-4, 2**-6, 2**-8]
EPS = 2.0**-23
PAST = torch.ones(16, 16, dtype=torch.bool).tril()


def golden() -> dict[str, Tensor]:
    with np.load(GOLDEN / "grape_ap_v1.npz") as file:
        return {key: torch.from_numpy(file[key]) for key in file}


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def grape_ap(options: str = "", *, heads: int = 2, kv_heads: int = 2, width: int = 16) -> Encoding:
    return build(f"grape_ap({options})", Site(width, heads, kv_heads, 8, 64, 64, causal=True)).double()


def probing(p: Tensor, options: str) -> tuple[Encoding, Tensor]:
    """An encoding and an input whose probes are given, (1, 2, T, P)."""
    width = 2 * p.shape[-1]
    encoding = grape_ap(f"probes={p.shape[-1]}{options}", width=width)
    with torch.no_grad():
        encoding.weight.copy_(torch.eye(width))
    return encoding, p.transpose(1, 2).flatten(-2)


def bias(encoding: Encoding, x: Tensor, positions: Tensor, rows: int | None = None) -> Rowwise:
    rows = rows or x.shape[1]
    q, k = (torch.zeros(len(x), h, n, 8, dtype=x.dtype) for h, n in ((encoding.heads, rows), (encoding.kv_heads, 1)))
    at = At(x, positions[-rows:], positions, uniform=True)
    features, _ = encoding.state(k, at, None)
    found = encoding.bias(q, features, at)
    assert isinstance(found, Rowwise)
    return found


def normed(p: list[float]) -> list[float]:
    return [one / math.sqrt(sum(a * a for a in p) / len(p) + EPS) for one in p]


def turned(p: list[float], angle: float) -> list[float]:
    half, cos, sin = len(p) // 2, math.cos(angle), math.sin(angle)
    first, second = p[:half], p[half:]
    return [a * cos - b * sin for a, b in zip(first, second, strict=True)] + [
        a * sin + b * cos for a, b in zip(first, second, strict=True)
    ]


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
@pytest.mark.parametrize("form", ["code", "paper", "relative"])
def test_the_bias_is_summed_from_the_key_to_the_query(form: str, kv_heads: int) -> None:
    encoding = grape_ap(f"form={form!r}, probes=4", heads=4, kv_heads=kv_heads, width=5)
    weight, x, positions = drawn(0, 16, 5), drawn(1, 2, 6, 5), torch.arange(6) + 3
    with torch.no_grad():
        encoding.weight.copy_(weight)
    got = bias(encoding, x, positions).tile()
    for b in range(2):
        for h in range(4):
            probes = [(weight[4 * h : 4 * h + 4] @ x[b, t]).tolist() for t in range(6)]
            for i in range(6):
                asks = probes[i] if form == "code" else normed(probes[i])
                asks = turned(asks, i + 3) if form == "relative" else asks
                total = 0.0
                for j in range(i, -1, -1):
                    assert got[b, h, i, j].item() == pytest.approx(total, abs=1e-12)
                    told = turned(normed(probes[j]), j + 3)
                    logit = sum(one * other for one, other in zip(asks, told, strict=True)) / 4
                    total -= SLOPES[h] * math.log1p(math.exp(-logit))


@pytest.mark.parametrize("size", [4, 8])
@pytest.mark.parametrize("form", ["code", "paper"])
def test_golden_vectors(form: str, size: int) -> None:
    """The published code leaves the query's probe as it is, the paper normalises it."""
    g = golden()
    encoding, x = probing(g[f"p_raw_p{size}"], f", form={form!r}")
    at = At(x, -g["pos"], -g["pos"], uniform=False)
    features, _ = encoding.state(g["k"], at, None)
    torch.testing.assert_close(features, g[f"p_rot_p{size}"], rtol=0, atol=1e-10)
    found = bias(encoding, x, -g["pos"]).tile().masked_fill(~PAST, 0.0)
    torch.testing.assert_close(found, g[f"bias_{form}_p{size}"], rtol=0, atol=1e-10)
    v = torch.eye(16, dtype=torch.float64).expand(1, 2, -1, -1)  # outputs are then the weights themselves
    weights = attend(encoding, Eager(), (g["q"], g["k"], v), at, Mask(causal=True))
    torch.testing.assert_close(weights, g[f"logits_{form}_p{size}"].softmax(dim=-1), rtol=0, atol=1e-10)


@pytest.mark.parametrize("size", [4, 8])
def test_a_shift_of_the_origin_changes_the_bias_by_the_golden_amount(size: int) -> None:
    g = golden()
    encoding, x = probing(g[f"p_raw_p{size}"], "")
    here, there = (bias(encoding, x, -(g["pos"] + shift)).tile().masked_fill(~PAST, 0.0) for shift in (0, 5))
    torch.testing.assert_close(there, g[f"bias_code_offset5_p{size}"], rtol=0, atol=1e-10)
    assert (there - here).abs().max().item() == pytest.approx({4: 0.31, 8: 0.12}[size], abs=0.01)


def test_a_shift_of_the_origin_changes_nothing_once_the_query_turns_too() -> None:
    encoding, x = probing(drawn(0, 1, 2, 16, 8), ", form='relative'")
    here, there = (bias(encoding, x, torch.arange(16) + shift).tile() for shift in (0, 1000))
    torch.testing.assert_close(there, here, rtol=0, atol=1e-12)


def test_the_two_published_forms_differ() -> None:
    p = drawn(0, 1, 2, 16, 8)
    code, paper = (bias(*probing(p, f", form={form!r}"), torch.arange(16)).tile() for form in ("code", "paper"))
    assert (code - paper).abs().max() > 0.01


def test_probes_of_nothing_make_it_alibi_times_the_logarithm_of_two() -> None:
    found = bias(grape_ap(heads=4, width=5), drawn(0, 1, 6, 5), torch.arange(6)).tile()
    for h in range(4):
        for i in range(6):
            for j in range(i + 1):
                assert found[0, h, i, j].item() == pytest.approx(-math.log(2) * SLOPES[h] * (i - j), abs=1e-12)


def test_rows_of_fewer_queries_are_the_last_rows_of_the_whole() -> None:
    encoding, x = probing(drawn(0, 1, 2, 16, 8), "")
    whole, last = (bias(encoding, x, torch.arange(16), rows) for rows in (None, 5))
    torch.testing.assert_close(last.tile(), whole.tile()[:, :, -5:], rtol=0, atol=1e-12)
    torch.testing.assert_close(last.tile(slice(1, 3)), whole.tile()[:, :, 12:14], rtol=0, atol=1e-12)
    torch.testing.assert_close(last.tile(slice(2), slice(3, 9)), whole.tile()[:, :, 11:13, 3:9], rtol=0, atol=1e-12)


def test_a_long_row_starts_at_zero_and_stays_exact_in_float32() -> None:
    """A row's total less its running sum would leave 2e-4 at the query itself."""
    p = drawn(0, 1, 2, 4096, 8)
    encoding, x = probing(p, "")
    last = slice(4095, 4096)
    exact = bias(encoding, x, torch.arange(4096)).tile(last)
    rounded = bias(encoding.float(), x.float(), torch.arange(4096)).tile(last)
    assert (rounded[..., -1] == 0).all()
    torch.testing.assert_close(rounded[..., -64:].double(), exact[..., -64:], rtol=1e-6, atol=1e-6)


def test_probes_start_small() -> None:
    encoding = grape_ap(width=400)
    encoding.reset(torch.Generator().manual_seed(0))
    assert encoding.weight.std().item() == pytest.approx(0.5 / 20, rel=0.05)


@pytest.mark.parametrize("options", ["probes=0", "probes=3", "eps=-1.0"])
def test_an_odd_number_of_probes_and_a_negative_eps_are_unsupported(options: str) -> None:
    with pytest.raises(Unsupported, match="even and at least 2, eps at least 0"):
        grape_ap(options)
