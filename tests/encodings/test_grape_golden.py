"""Golden vectors of whole attention layers and of encodings together, through the public classes.

The official layers of rotary encodings normalise after turning, which breaks the relative law; here the model
normalises first. Their numbers are reached by turning with our classes and normalising by hand. Rotations of the
golden files turn by minus the angle in the half layout: they are ours with channels of the second half negated.
Files with a KV shift are in tests/test_kv_shift.py.
"""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from grape_bench.attention import Attention, attend
from grape_bench.backends import Mask
from grape_bench.backends.eager import Eager
from grape_bench.encodings import At, Encoding, Site, build

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
SITE = Site(16, 2, 2, 8, 64, 64, causal=True)
HERE = torch.arange(16)
MIRROR = torch.tensor([1.0] * 4 + [-1.0] * 4, dtype=torch.float64)  # R(-a) = M R(a) M
ADDITIVE = {
    "alibi": "alibi",
    "fox": "fox",
    "grape_a_key": "grape_a(gates='key')",
    "grape_a_key_nol2": "grape_a(gates='key', normalise=False)",
    "grape_a_query": "grape_a(gates='query')",
    "grape_a_query_nol2": "grape_a(gates='query', normalise=False)",
    "grape_a_querykey": "grape_a",
    "grape_a_querykey_nol2": "grape_a(normalise=False)",
}
PROBING = {"grape_ap_v1_p4": 4, "grape_ap_v1_p8": 8}
ROTARY = {
    "rope": "rope(layout='half')",
    "grape_m_nonctx_shared": "grape_m(layout='half')",
    "grape_m_nonctx_perhead": "grape_m(heads='own', layout='half')",
    "grape_m_ctx_scalar": "grape_m_contextual(layout='half')",
    "grape_m_ctx_perhead": "grape_m_contextual(heads='own', layout='half')",
}
# Names of the golden files for parameters of our classes; `log_freq_param` is slowed in one of the two alone.
LOADED = {
    "weight": ("W_f", "W_p"),
    "start": ("b_f", "b_omega"),
    "gate": ("W_omega",),
    "u": ("u",),
    "v": ("v_gate",),
    "stored": ("omega_raw", "log_freq_param"),
    "log_frequency": ("log_freq_param",),
}


def golden(name: str) -> dict[str, Tensor]:
    with np.load(GOLDEN / f"{name}.npz") as file:
        return {key: torch.from_numpy(file[key]) for key in file}


def made(text: str, g: dict[str, Tensor]) -> Encoding:
    """An encoding with the parameters of a golden file."""
    encoding = build(text, SITE).double()
    with torch.no_grad():
        for name, parameter in encoding.named_parameters():
            parameter.copy_(next(g[key] for key in LOADED[name] if key in g))
    return encoding


def layer(encoding: Encoding, g: dict[str, Tensor]) -> Attention:
    found = Attention(SITE, encoding, Eager(), qk_norm=True).double()
    projections = (("query", "W_q"), ("key", "W_k"), ("value", "W_v"), ("out", "W_o"))
    with torch.no_grad():
        for name, key in projections:
            linear = getattr(found, name)
            linear.weight.copy_(g[key])
            linear.bias.zero_()
        for name, key in (("norm_q", "w_q_rms"), ("norm_k", "w_k_rms")):
            norm = getattr(found, name)
            norm.weight.copy_(g[key])
            norm.eps = g["rms_eps"].item()
    return found


def causal(scores: Tensor) -> Tensor:
    return scores.masked_fill(torch.ones(16, 16, dtype=torch.bool).triu(1), -math.inf)


def close(got: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-10)


@torch.no_grad()
@pytest.mark.parametrize("name", ADDITIVE)
def test_layers_with_a_bias(name: str) -> None:
    g = golden(f"layer_{name}")
    close(layer(made(ADDITIVE[name], g), g)(At(g["x"], HERE, HERE, uniform=True), Mask(causal=True)), g["y"])


@torch.no_grad()
@pytest.mark.parametrize("name", PROBING)
def test_layers_with_a_bias_along_paths(name: str) -> None:
    g = golden(f"layer_{name}")
    encoding = made(f"grape_ap(probes={PROBING[name]}, eps={g['p_rms_eps'].item()})", g)
    close(layer(encoding, g)(At(g["x"], -HERE, -HERE, uniform=False), Mask(causal=True)), g["y"])


@torch.no_grad()
def test_a_layer_whose_probes_are_its_queries() -> None:
    """Such probes are no linear map of the layer's input: here queries stand in its place."""
    g = golden("layer_grape_ap_v1_tiepq")
    encoding = build(f"grape_ap(eps={g['p_rms_eps'].item()})", SITE).double()
    encoding.weight.copy_(torch.eye(16))
    at = At(g["q_final"].transpose(1, 2).flatten(-2), -HERE, -HERE, uniform=False)
    weights = attend(encoding, Eager(), (g["q_final"], g["k_final"], _axes()), at, Mask(causal=True))
    close(weights, g["logits"].softmax(dim=-1))


def _axes() -> Tensor:
    """Values with which outputs are the weights themselves."""
    return torch.eye(16, dtype=torch.float64).expand(1, 2, -1, -1)


@torch.no_grad()
@pytest.mark.parametrize("name", ROTARY)
def test_layers_with_a_rotation(name: str) -> None:
    g = golden(f"layer_{name}")
    encoding = made(ROTARY[name], g)
    q, k = ((g["x"] @ g[key].T).unflatten(-1, (2, 8)).transpose(1, 2) * MIRROR for key in ("W_q", "W_k"))
    at = At(g["x"], HERE, HERE, uniform=True)
    features, _ = encoding.state(k, at, None)
    turned = zip(encoding.rotate(q, k, features, at), ("q", "k"), strict=True)
    q, k = (nn.functional.rms_norm(one * MIRROR, (8,), g[f"w_{side}_rms"], g["rms_eps"].item()) for one, side in turned)
    close(q, g["q_final"])
    close(k, g["k_final"])
    close(causal(q @ k.mT / 8**0.5), g["logits"])


@torch.no_grad()
def test_rope_and_grape_a_together() -> None:
    """Gates read q and k as they were before the rotation."""
    g, gates = golden("joint_rope_plus_a_querykey"), golden("grape_a_querykey")
    encoding = build("rope(layout='half') + grape_a", SITE).double()
    grape_a = encoding.parts[1]
    for name, key in (("stored", "omega_raw"), ("u", "u"), ("v", "v")):
        getattr(grape_a, name).copy_(gates[key] * (MIRROR if name != "stored" else 1.0))
    q, k, at = g["q"] * MIRROR, g["k"] * MIRROR, At(g["q"], HERE, HERE, uniform=True)
    turned, keys, bias = encoding.encode(q, k, at)
    close(turned * MIRROR, g["q_rot"])
    close(keys * MIRROR, g["k_rot"])
    assert bias is not None
    close(bias.tile().tril(), g["bias"])
    close(causal(turned @ keys.mT / 8**0.5 + bias.tile()), g["logits"])


@torch.no_grad()
def test_the_blogs_rotation_and_table_once_its_channels_are_paired() -> None:
    g = golden("blog_grape")
    window = int(g["max_len"]) - 1
    encoding = build(f"rope(layout='half') + clamp(window={window})", SITE).double()
    encoding.parts[1].table.copy_(g["relative_bias_table"])
    q, k, bias = encoding.encode(g["q"], g["k"], At(g["q"], HERE, HERE, uniform=True))
    close(q, g["q_embed_fixed_halves"])
    close(k, g["k_embed_fixed_halves"])
    assert bias is not None
    close(bias.tile()[0], g["bias"])
    close(q @ k.mT / 8**0.5, g["scores_fixed_halves"])
    close(causal(q @ k.mT / 8**0.5 + bias.tile()), g["logits_fixed_halves_causal"])
    pairs = build("rope", SITE)
    q, k, _ = pairs.encode(g["q"], g["k"], At(g["q"], HERE, HERE, uniform=True))
    close(q, g["q_embed_fixed_pairs"])
    close(k, g["k_embed_fixed_pairs"])
    close(q @ k.mT / 8**0.5, g["scores_fixed_pairs"])
    assert (q @ k.mT / 8**0.5 - g["scores_as_written"]).abs().max() > 0.1


@torch.no_grad()
def test_a_unipotent_action_on_two_more_channels_is_alibis_lift() -> None:
    """Also ahead of the query, where the lift is linear; it lacks what a row has in common."""
    g = golden("additive_lifts")
    bias = build("alibi", SITE).bias(g["q"], None, At(g["q"], g["pos"], g["pos"], uniform=True))
    assert bias is not None
    close(g["q"] @ g["k"].mT + bias.tile(), g["inner_unscaled"])
    u, v = bias.lift()
    rest = g["inner_unscaled"] - torch.cat((g["q"], u), dim=-1) @ torch.cat((g["k"], v.expand(1, 2, -1, -1)), dim=-1).mT
    close(rest, rest[..., :1].expand_as(rest))
