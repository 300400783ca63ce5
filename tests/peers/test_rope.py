"""RoPE, whole and partial, in both layouts."""

import math

import pytest
import torch
from ours import installed, normal, places
from rotary import Peer, peers
from source import definitions
from torch import Tensor

B, H, T, D = 2, 3, 40, 16
LAYOUTS = ("interleaved", "half")
PEERS = [pytest.param(layout, peer, id=f"{layout}-{peer.name}") for layout in LAYOUTS for peer in peers(layout, T, D)]


def ours(expression: str, x: Tensor) -> Tensor:
    """Queries (B, H, T, D)."""
    x = x.double()
    return installed(expression, x.shape[1], x.shape[-1]).rotate(x, x, None, places(x[:, 0]))[0]


def loop(x: Tensor, layout: str, turning: int = D) -> Tensor:
    """The first channels turned plane by plane."""
    out = x.double()
    for t in range(x.shape[2]):
        for i in range(turning // 2):
            a, b = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + turning // 2)
            angle = t * 10_000 ** (-2 * i / turning)
            first, second = x[:, :, t, a].double(), x[:, :, t, b].double()
            out[:, :, t, a] = first * math.cos(angle) - second * math.sin(angle)
            out[:, :, t, b] = first * math.sin(angle) + second * math.cos(angle)
    return out


@pytest.mark.parametrize(("layout", "peer"), PEERS)
def test_queries_and_keys_turn_alike(layout: str, peer: Peer, meet) -> None:
    q, k = normal(2, B, H, T, D)
    for x, turned in zip((q, k), peer.turn(peer.order(q), peer.order(k)), strict=True):
        expected = loop(x, layout)
        meet.agrees(f"rope, {layout}", peer.name, peer.order(turned), ours(f"rope(layout={layout!r})", x), expected)


def test_interleaved_pairs_of_litgpt_come_back_in_halves(meet) -> None:
    """The rotation is the interleaved one; the channels that it returns are in the order of the other layout."""
    litgpt = definitions("litgpt.model", "yarn_get_mscale", "build_rope_cache", "apply_rope_interleave")
    q = normal(B, H, T, D)
    theirs = litgpt.apply_rope_interleave(q, *(one[None] for one in litgpt.build_rope_cache(T, D)))
    theirs = theirs.unflatten(-1, (2, D // 2)).mT.flatten(-2)
    meet.agrees("rope, interleaved", "litgpt", theirs, ours("rope", q), loop(q, "interleaved"))


@pytest.mark.parametrize("fraction", [0.25, 0.5, 1.0])
def test_a_fraction_turns_as_in_gpt_neox(fraction: float, meet) -> None:
    from transformers import GPTNeoXConfig
    from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXRotaryEmbedding, apply_rotary_pos_emb

    config = GPTNeoXConfig(hidden_size=H * D, num_attention_heads=H, rotary_pct=fraction)
    q, x = normal(B, H, T, D), normal(B, T, H * D)
    theirs, _ = apply_rotary_pos_emb(q, q, *GPTNeoXRotaryEmbedding(config)(x, torch.arange(T)[None]))
    got, expected = ours(f"rope(fraction={fraction}, layout='half')", q), loop(q, "half", int(fraction * D))
    meet.agrees("rope, partial half", "transformers GPT-NeoX", theirs, got, expected)
    rest = slice(int(fraction * D), None)
    assert theirs[..., rest].double().equal(got[..., rest])  # what does not turn is not touched


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_fraction_turns_as_in_fla(layout: str, meet) -> None:
    fla = definitions("fla.modules.rotary.ops", "rotate_half", "rotary_embedding_ref")
    angles = torch.arange(T)[:, None] * 10_000 ** (-torch.arange(0, D // 2, 2) / (D // 2))
    q = normal(B, H, T, D)
    theirs = fla.rotary_embedding_ref(q.transpose(1, 2), angles.cos(), angles.sin(), layout == "interleaved")
    got = ours(f"rope(fraction=0.5, layout={layout!r})", q)
    meet.agrees(f"rope, partial {layout}", "fla", theirs.transpose(1, 2), got, loop(q, layout, D // 2))
