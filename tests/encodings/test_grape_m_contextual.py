"""Contextual GRAPE-M against a phase that is counted token by token, and against golden vectors.

Golden vectors turn by minus the phase in the half layout: they are ours with channels of the second half negated.
"""

import cmath
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from grape_bench.encodings import At, Encoding, Site, build
from grape_bench.errors import Unsupported

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
MIRROR = torch.tensor([1.0] * 4 + [-1.0] * 4, dtype=torch.float64)  # R(-a) = M R(a) M


def golden() -> dict[str, Tensor]:
    with np.load(GOLDEN / "grape_m_ctx.npz") as file:
        return {key: torch.from_numpy(file[key]) for key in file}


def contextual(options: str = "", *, heads: int = 2, kv_heads: int = 2, width: int = 16, head_dim: int = 8) -> Encoding:
    site = Site(width, heads, kv_heads, head_dim, 64, 64, causal=True)
    return build(f"grape_m_contextual({options})", site).double()


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def load(encoding: Encoding, gate: Tensor, start: Tensor, log_frequency: Tensor) -> Encoding:
    with torch.no_grad():
        encoding.gate.copy_(gate)
        encoding.start.copy_(start)
        encoding.log_frequency.copy_(log_frequency)
    return encoding


def turn(encoding: Encoding, q: Tensor, k: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    at = At(x, torch.arange(q.shape[-2]), torch.arange(k.shape[-2]), uniform=True)
    features, _ = encoding.state(k, at, None)
    return encoding.rotate(q, k, features, at)


@pytest.mark.parametrize("link", ["sigmoid", "softplus"])
@pytest.mark.parametrize("heads", ["shared", "own"])
def test_a_token_turns_by_what_came_before_it(heads: str, link: str) -> None:
    rows = 2 if heads == "own" else 1
    gate, start, log_frequency, x = drawn(0, rows, 16), drawn(1, rows), drawn(2, 4), drawn(3, 2, 6, 16)
    encoding = load(contextual(f"heads={heads!r}, link={link!r}", heads=4), gate, start, log_frequency)
    q, k = drawn(4, 2, 4, 6, 8), drawn(5, 2, 2, 6, 8)
    turned = turn(encoding, q, k, x)
    for given, got, group in ((q, turned[0], 2), (k, turned[1], 1)):
        for b in range(2):
            for h in range(given.shape[1]):
                row, phase = (h // group if heads == "own" else 0), 0.0
                for t in range(6):
                    for m in range(4):
                        pair = complex(*given[b, h, t, 2 * m : 2 * m + 2].tolist())
                        pair *= cmath.exp(1j * phase * math.exp(log_frequency[m]))
                        found = complex(*got[b, h, t, 2 * m : 2 * m + 2].tolist())
                        assert found == pytest.approx(pair, abs=1e-12)
                    z = (gate[row] @ x[b, t] + start[row]).item()
                    phase += 1 / (1 + math.exp(-z / 16)) if link == "sigmoid" else math.log1p(math.exp(z))


@pytest.mark.parametrize(("link", "step"), [("sigmoid", 0.3937), ("softplus", 0.001)])
def test_it_starts_as_rope_with_steps_of_the_published_length(link: str, step: float) -> None:
    """The code's gate starts at 0.3937, though its documentation and its start of 0.001 speak of the other one."""
    x, at = drawn(0, 1, 6, 16), torch.arange(6)
    features, carry = contextual(f"link={link!r}").state(x[:, None], At(x, at, at, uniform=True), None)
    assert features[0, 0, :, 0].tolist() == pytest.approx([step * t for t in range(6)], abs=3e-4)
    assert carry.flatten().tolist() == pytest.approx([6 * step], abs=3e-4)
    encoding, q = contextual(f"link={link!r}"), drawn(1, 1, 2, 6, 8)
    rope = build("rope", Site(16, 2, 2, 8, 64, 64))
    reals = features[0, 0, :, 0].detach()
    expected, _ = rope.rotate(q, q, None, At(q, reals, reals, uniform=False))
    torch.testing.assert_close(turn(encoding, q, q, x)[0], expected, rtol=0, atol=1e-6)


def test_positions_are_not_read() -> None:
    encoding, q, x = contextual(), drawn(0, 1, 2, 6, 8), drawn(1, 1, 6, 16)
    turned = []
    for start in (0, 1000):
        at = At(x, torch.arange(6) + start, torch.arange(6) + start, uniform=True)
        features, _ = encoding.state(q, at, None)
        turned.append(encoding.rotate(q, q, features, at)[0])
    torch.testing.assert_close(turned[0], turned[1], rtol=0, atol=0)


@pytest.mark.parametrize("link", ["code", "softplus"])
@pytest.mark.parametrize("heads", ["scalar", "perhead"])
def test_golden_vectors(heads: str, link: str) -> None:
    g, ours = golden(), {"code": "sigmoid", "softplus": "softplus", "scalar": "shared", "perhead": "own"}
    encoding = contextual(f"heads={ours[heads]!r}, link={ours[link]!r}, layout='half'")
    load(encoding, g[f"W_{heads}"], g[f"b_{heads}"], g["log_freq"])
    at = At(g["x"], torch.arange(16), torch.arange(16), uniform=True)
    features, _ = encoding.state(g["k"], at, None)
    phases = g[f"phi_{heads}_{link}"].transpose(1, 2).expand(-1, 2, -1)
    torch.testing.assert_close(features[..., 0], phases, rtol=0, atol=1e-10)
    q, k = encoding.rotate(g["q"] * MIRROR, g["k"] * MIRROR, features, at)
    torch.testing.assert_close(q * MIRROR, g[f"q_rot_{heads}_{link}"], rtol=0, atol=1e-10)
    torch.testing.assert_close(k * MIRROR, g[f"k_rot_{heads}_{link}"], rtol=0, atol=1e-10)
    scores = (q @ k.mT / 8**0.5).masked_fill(torch.ones(16, 16, dtype=torch.bool).triu(1), -math.inf)
    torch.testing.assert_close(scores, g[f"logits_{heads}_{link}"], rtol=0, atol=1e-10)


def test_the_golden_start_is_ours() -> None:
    assert (contextual().start / 16).sigmoid().item() == pytest.approx(golden()["omega_at_init_code"].item(), abs=1e-6)


def test_an_odd_head_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="even"):
        contextual(head_dim=7)


def test_an_encoder_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="causal only"):
        build("grape_m_contextual", Site(16, 2, 2, 8, 64, 64))
