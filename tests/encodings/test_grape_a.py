"""GRAPE-A against its formula number by number in float64, and against golden vectors."""

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
SLOPES = {2: [2**-4, 2**-8], 4: [2**-2, 2**-4, 2**-6, 2**-8]}
FORMS = {"l2": "", "nol2": ", normalise=False", "paper": ", normalise=False, sloped=False"}
GATES = {"key": "key", "query": "query", "both": "querykey"}


def golden(gates: str) -> dict[str, Tensor]:
    with np.load(GOLDEN / f"grape_a_{GATES[gates]}.npz") as file:
        return {key: torch.from_numpy(file[key]) for key in file}


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def grape_a(options: str, *, heads: int = 2, kv_heads: int = 2) -> Encoding:
    return build(f"grape_a({options})", Site(16, heads, kv_heads, 8, 64, 64, causal=True)).double()


def load(encoding: Encoding, **values: Tensor) -> Encoding:
    with torch.no_grad():
        for name, value in values.items():
            getattr(encoding, name).copy_(value)
    return encoding


def bias(encoding: Encoding, q: Tensor, k: Tensor, positions: Tensor) -> LowRank:
    at = At(q, positions, positions, uniform=True)
    features, _ = encoding.state(k, at, None)
    found = encoding.bias(q, features, at)
    assert isinstance(found, LowRank)
    return found


def softplus(z: float) -> float:
    return math.log1p(math.exp(z))


def gate(towards: Tensor, x: Tensor, normalise: bool) -> float:
    length = math.sqrt(sum(one**2 for one in towards.tolist())) if normalise else 1.0
    return softplus(sum(a / length * b for a, b in zip(towards.tolist(), x.tolist(), strict=True)) / math.sqrt(8))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("gates", GATES)
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_the_bias_is_its_formula_on_the_past(gates: str, form: str, kv_heads: int) -> None:
    encoding = grape_a(f"gates={gates!r}{FORMS[form]}", heads=4, kv_heads=kv_heads)
    u, v, stored = drawn(0, 4, 8), drawn(1, 4, 8), drawn(2, 4)
    load(encoding, stored=stored, **{n: one for n, one in (("u", u), ("v", v)) if getattr(encoding, n) is not None})
    q, k, positions = drawn(3, 2, 4, 6, 8), drawn(4, 2, kv_heads, 6, 8), torch.arange(6) + 90
    got = bias(encoding, q, k, positions).tile()
    for b in range(2):
        for h in range(4):
            steep = softplus(stored[h].item()) * (1.0 if form == "paper" else SLOPES[4][h])
            for i in range(6):
                for j in range(i + 1):
                    by_key = gate(u[h], k[b, h * kv_heads // 4, j], form == "l2") if gates != "query" else 0.0
                    by_query = gate(v[h], q[b, h, i], form == "l2") if gates != "key" else 0.0
                    expected = -(i - j) * steep * (by_query + by_key)
                    assert got[b, h, i, j].item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("gates", GATES)
def test_golden_vectors(gates: str, form: str) -> None:
    g, encoding = golden(gates), grape_a(f"gates={gates!r}{FORMS[form]}")
    stored = g["omega_raw"] if form != "paper" else (g["omega_paper"].exp() - 1).log().expand(2)
    load(encoding, stored=stored, **{name: g[name] for name in ("u", "v") if name in g})
    past = torch.ones(16, 16, dtype=torch.bool).tril()
    found = bias(encoding, g["q"], g["k"], g["pos"]).tile()
    torch.testing.assert_close(found.masked_fill(~past, 0.0), g[f"bias_{form}"], rtol=0, atol=1e-10)
    if form != "paper" and gates != "query":
        features, _ = encoding.state(g["k"], At(g["q"], g["pos"], g["pos"], uniform=True), None)
        torch.testing.assert_close(features[..., 0], g[f"gate_k_{form}"], rtol=0, atol=1e-10)
    v = torch.eye(16, dtype=torch.float64).expand(1, 2, -1, -1)  # outputs are then the weights themselves
    at = At(g["q"], g["pos"], g["pos"], uniform=True)
    weights = attend(encoding, Eager(), (g["q"], g["k"], v), at, Mask(causal=True))
    torch.testing.assert_close(weights, g[f"logits_{form}"].softmax(dim=-1), rtol=0, atol=1e-10)


@pytest.mark.parametrize(("gates", "channels"), [("query", 1), ("key", 2), ("both", 3)])
def test_it_lifts_to_a_channel_for_the_query_and_two_for_the_key(gates: str, channels: int) -> None:
    encoding = load(grape_a(f"gates={gates!r}"), stored=drawn(0, 2))
    found = bias(encoding, drawn(1, 1, 2, 9, 8), drawn(2, 1, 2, 9, 8), torch.arange(9))
    u, v = found.lift()
    assert u.shape[-1] == v.shape[-1] == channels
    rest = found.tile() - u @ v.mT
    torch.testing.assert_close(rest, rest[..., :1].expand_as(rest), rtol=0, atol=1e-12)


@pytest.mark.parametrize("gates", GATES)
def test_gates_of_nothing_make_it_alibi(gates: str) -> None:
    """softplus(0) = ln 2, once or twice."""
    target = 1 / (math.log(2) * (2 if gates == "both" else 1))
    encoding = load(
        grape_a(f"gates={gates!r}"), stored=torch.tensor([math.log(math.expm1(target))] * 2, dtype=torch.float64)
    )
    found = bias(encoding, drawn(0, 1, 2, 7, 8), drawn(1, 1, 2, 7, 8), torch.arange(7)).tile()
    for h in range(2):
        for i in range(7):
            for j in range(i + 1):
                assert found[0, h, i, j].item() == pytest.approx(-SLOPES[2][h] * (i - j), abs=1e-12)


def test_float32_is_exact_at_far_positions() -> None:
    """Positions counted from zero would lose the difference of two keys to the size of their positions."""
    encoding, far = load(grape_a(""), u=drawn(0, 2, 8), v=drawn(1, 2, 8)), torch.arange(9) + 1_000_000
    q, k = drawn(2, 1, 2, 9, 8), drawn(3, 1, 2, 9, 8)
    exact = bias(encoding, q, k, far).tile()
    rounded = bias(encoding.float(), q.float(), k.float(), far).tile()
    torch.testing.assert_close(rounded.double(), exact, rtol=0, atol=1e-6)


def test_slopes_start_at_one_and_directions_at_random() -> None:
    encoding = build("grape_a", Site(2000, 4, 2, 500, 64, 64, causal=True))
    encoding.reset(torch.Generator().manual_seed(0))
    assert torch.nn.functional.softplus(encoding.stored).tolist() == pytest.approx([1.0] * 4, abs=1e-6)
    for side in (encoding.u, encoding.v):
        assert side.norm(dim=1).tolist() == pytest.approx([1.0] * 4, rel=0.15)


@pytest.mark.parametrize(("gates", "names"), [("query", {"stored", "v"}), ("key", {"stored", "u"})])
def test_a_gate_that_is_not_used_has_no_parameter(gates: str, names: set[str]) -> None:
    assert {name for name, _ in grape_a(f"gates={gates!r}").named_parameters()} == names
