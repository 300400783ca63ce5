"""How each peer turns queries and keys by RoPE, for `test_rope.py` to compare and `speed.py` to time.

Shapes: B batch, H heads, T tokens, D head channels.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from source import definitions
from torch import Tensor

Pair = tuple[Tensor, Tensor]
BASE = 10_000


class Peer(NamedTuple):
    """One implementation at positions 0 .. T - 1.

    Args:
        turn: q and k to both turned; what depends on positions alone was computed before, where the peer allows it.
        tokens_first: it takes (B, T, H, D) in place of (B, H, T, D).
        as_it_lies: and it does so with heads first in memory, as a view.
        twin: its formula is ours, one complex product, so that it can be equalled and no more.
    """

    name: str
    turn: Callable[[Tensor, Tensor], Pair]
    tokens_first: bool = False
    as_it_lies: bool = False
    twin: bool = False

    def order(self, x: Tensor) -> Tensor:
        """From (B, H, T, D) to what it takes, and back."""
        if not self.tokens_first:
            return x
        return x.transpose(1, 2) if self.as_it_lies else x.transpose(1, 2).contiguous()


def peers(layout: str, length: int, size: int) -> list[Peer]:
    """All that have this layout, for D channels."""
    return list(_half(length, size) if layout == "half" else _interleaved(length, size))


def _half(length: int, size: int) -> Iterator[Peer]:
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    config = LlamaConfig(head_dim=size, rope_parameters={"rope_type": "default", "rope_theta": BASE})
    llama = LlamaRotaryEmbedding(config)(torch.zeros(1), torch.arange(length)[None])
    yield Peer("transformers Llama", lambda q, k: apply_rotary_pos_emb(q, k, *llama))

    litgpt = definitions("litgpt.model", "yarn_get_mscale", "build_rope_cache", "apply_rope")
    cos, sin = (one[None] for one in litgpt.build_rope_cache(length, size))
    yield Peer("litgpt", lambda q, k: (litgpt.apply_rope(q, cos, sin), litgpt.apply_rope(k, cos, sin)))

    yield _fla(length, size, interleaved=False)


def _interleaved(length: int, size: int) -> Iterator[Peer]:
    from rotary_embedding_torch import RotaryEmbedding

    turn = RotaryEmbedding(size).rotate_queries_or_keys
    yield Peer("rotary-embedding-torch", lambda q, k: (turn(q), turn(k)))

    from x_transformers.x_transformers import RotaryEmbedding as Embedding
    from x_transformers.x_transformers import apply_rotary_pos_emb as apply

    angles, scale = Embedding(size).forward_from_seq_len(length)
    yield Peer("x-transformers", lambda q, k: (apply(q, angles, scale), apply(k, angles, scale)))

    from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb, create_sinusoidal_positions

    sin, cos = create_sinusoidal_positions(length, size)[None].chunk(2, dim=-1)
    gptj = lambda q, k: (apply_rotary_pos_emb(q, sin, cos), apply_rotary_pos_emb(k, sin, cos))  # noqa: E731
    yield Peer("transformers GPT-J", gptj, tokens_first=True)

    from transformers.models.llama4.configuration_llama4 import Llama4TextConfig
    from transformers.models.llama4.modeling_llama4 import Llama4TextRotaryEmbedding, apply_rotary_emb

    config = Llama4TextConfig(head_dim=size, rope_parameters={"rope_type": "default", "rope_theta": BASE})
    cis = Llama4TextRotaryEmbedding(config)(torch.zeros(1), torch.arange(length)[None])
    llama4 = Peer("transformers Llama 4", lambda q, k: apply_rotary_emb(q, k, cis), tokens_first=True, twin=True)
    yield llama4
    yield llama4._replace(name=f"{llama4.name}, heads first in memory", as_it_lies=True)

    torchtune = definitions("torchtune.modules.position_embeddings", "RotaryPositionalEmbeddings")
    tune = torchtune.RotaryPositionalEmbeddings(size, length, BASE)
    yield Peer("torchtune", lambda q, k: (tune(q), tune(k)), tokens_first=True)

    yield _fla(length, size, interleaved=True)


def _fla(length: int, size: int, *, interleaved: bool) -> Peer:
    """Its plain reference; what it runs in models is a GPU kernel."""
    fla = definitions("fla.modules.rotary.ops", "rotate_half", "rotary_embedding_ref")
    angles = torch.arange(length)[:, None] * BASE ** (-torch.arange(0, size, 2) / size)
    cos, sin = angles.cos(), angles.sin()

    def turn(q: Tensor, k: Tensor) -> Pair:
        one, other = (fla.rotary_embedding_ref(x, cos, sin, interleaved=interleaved) for x in (q, k))
        return one, other

    return Peer("fla", turn, tokens_first=True)
