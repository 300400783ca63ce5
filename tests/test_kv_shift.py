"""KV shift against golden vectors, in chunks, with padding and with packed documents.

Shapes: B batch, H heads, T tokens, D head channels, C model channels.
"""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from grape_bench.attention import Attention, Cache, Shift
from grape_bench.backends import Mask
from grape_bench.backends.eager import Eager
from grape_bench.cell import ModelOptions
from grape_bench.encodings import At, Site, build
from grape_bench.model import Transformer

GOLDEN = Path(__file__).parent / "data" / "golden"
SITE = Site(16, 2, 2, 8, 64, 64, causal=True)


def golden(name: str) -> dict[str, Tensor]:
    with np.load(GOLDEN / f"{name}.npz") as file:
        return {key: torch.from_numpy(file[key]) for key in file}


def close(got: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-10)


@torch.no_grad()
def test_keys_are_mixed_as_in_the_golden_file() -> None:
    g = golden("kv_shift")
    shift = Shift(Site(2, 2, 2, 8, 64, 64, causal=True)).double()
    for gate in (shift.keys, shift.values):
        gate.weight.copy_(torch.eye(2))
    x = g["alpha"].logit().transpose(1, 2)  # the layer's input is the gates themselves
    k, v = shift(g["k_raw"], g["k_raw"], x, Mask(causal=True), None)
    close(k, g["k_shifted"])
    close(v, g["k_shifted"])


@torch.no_grad()
def test_a_layer_with_a_bias_along_paths_and_a_shift_is_the_golden_one() -> None:
    g = golden("layer_grape_ap_v1_p4_kvshift")
    encoding = build(f"grape_ap(probes=4, eps={g['p_rms_eps'].item()})", SITE).double()
    encoding.weight.copy_(g["W_p"])
    layer = Attention(SITE, encoding, Eager(), qk_norm=True, kv_shift=True).double()
    weights = {"query": "W_q", "key": "W_k", "value": "W_v", "out": "W_o", "norm_q": "w_q_rms", "norm_k": "w_k_rms"}
    for name, key in weights.items():
        module = getattr(layer, name)
        module.weight.copy_(g[key])
        if isinstance(module, torch.nn.RMSNorm):
            module.eps = g["rms_eps"].item()
        else:
            module.bias.zero_()
    assert layer.shift is not None
    layer.shift.keys.weight.copy_(g["W_k_shift"])
    layer.shift.values.weight.copy_(g["W_v_shift"])
    here = -torch.arange(16)  # the golden rotation of probes turns the other way
    close(layer(At(g["x"], here, here, uniform=False), Mask(causal=True)), g["y"])


@torch.no_grad()
def test_a_rotary_layer_shifts_before_it_turns() -> None:
    """The official order: shift, turn by minus the angle in the half layout, then normalise."""
    g = golden("layer_rope_kvshift")
    shift = Shift(SITE).double()
    shift.keys.weight.copy_(g["W_k_shift"])
    shift.values.weight.copy_(g["W_v_shift"])
    q, k, v = ((g["x"] @ g[name].T).unflatten(-1, (2, 8)).transpose(1, 2) for name in ("W_q", "W_k", "W_v"))
    k, v = shift(k, v, g["x"], Mask(causal=True), None)
    rope, back = build("rope(layout='half')", SITE), -torch.arange(16)
    turned = rope.rotate(q, k, None, At(g["x"], back, back, uniform=False))
    norm = [one * w / (one.pow(2).mean(-1, keepdim=True) + g["rms_eps"]).sqrt() for one, w in
            zip(turned, (g["w_q_rms"], g["w_k_rms"]), strict=True)]  # fmt: skip
    close(norm[1], g["k_final"])
    close(v, g["v"])
    scores = (norm[0] @ norm[1].mT / math.sqrt(8)).masked_fill(torch.ones(16, 16).triu(1).bool(), -math.inf)
    close(scores, g["logits"])


def model() -> Transformer:
    options = ModelOptions(width=16, layers=2, heads=4, kv_heads=2, causal=True, kv_shift=True)
    made = Transformer(options, "rope", Eager(), vocabulary=11, answers=5, lengths=(16, 64))
    made.reset(0)
    return made.double().eval()


def tokens(count: int, length: int) -> Tensor:
    return torch.randint(11, (count, length), generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("steps", [[1] * 9, [5, 1, 3]])
@torch.no_grad()
def test_chunks_continue_from_the_last_token(steps: list[int]) -> None:
    decoder, given = model(), tokens(2, 9)
    caches, rows = [Cache(9), Cache(9)], []
    for piece in given.split(steps, dim=1):
        rows.append(decoder(piece, caches=caches))
    close(torch.cat(rows, dim=1), decoder(given))


@torch.no_grad()
def test_the_token_before_is_no_padding_and_of_no_other_document() -> None:
    decoder, given = model(), tokens(2, 7)
    padded, keys = torch.zeros(2, 12, dtype=torch.long), torch.zeros(2, 12, dtype=torch.bool)
    padded[:, 5:], keys[:, 5:] = given, True
    close(decoder(padded, keys=keys, positions=(torch.arange(12) - 5).clamp(min=0))[:, 5:], decoder(given))
    documents = torch.tensor([[0] * 3 + [1] * 4]).expand(2, -1)
    packed = decoder(given, documents=documents, positions=torch.tensor([0, 1, 2, 0, 1, 2, 3]))
    close(packed, torch.cat((decoder(given[:, :3]), decoder(given[:, 3:])), dim=1))


@torch.no_grad()
def test_documents_go_on_behind_a_cache() -> None:
    decoder, given = model(), tokens(1, 6)
    documents, positions = torch.tensor([[0, 0, 1, 1, 1, 2]]), torch.tensor([0, 1, 0, 1, 2, 0])
    whole = decoder(given, documents=documents, positions=positions)
    caches = [Cache(6), Cache(6)]
    rows = [
        decoder(given[:, i : i + 1], documents=documents[:, : i + 1], positions=positions[i : i + 1], caches=caches)
        for i in range(6)
    ]
    close(torch.cat(rows, dim=1), whole)
