"""Shaw: a learned vector for each near distance, met by the query."""

import math

import torch
from ours import installed, normal, tile
from torch import Tensor

B, H, T, D, W = 2, 2, 20, 8, 6
TABLE = normal(2 * W + 1, D, seed=1)


def loop(q: Tensor) -> Tensor:
    out = torch.zeros(B, H, T, T, dtype=torch.float64)
    for i in range(T):
        for j in range(T):
            vector = TABLE[min(max(j - i, -W), W) + W].double()
            out[..., i, j] = (q[:, :, i].double() * vector).sum(dim=-1) / math.sqrt(D)
    return out


def test_biases_are_those_of_wav2vec2_bert(meet) -> None:
    from transformers import Wav2Vec2BertConfig
    from transformers.models.wav2vec2_bert import modeling_wav2vec2_bert as model

    sides = {"left_max_position_embeddings": W, "right_max_position_embeddings": W}
    config = Wav2Vec2BertConfig(
        hidden_size=H * D, num_attention_heads=H, position_embeddings_type="relative_key", **sides
    )
    layer = model.Wav2Vec2BertSelfAttention(config)
    layer.load_state_dict(layer.state_dict() | {"distance_embedding.weight": TABLE})
    q, k = normal(2, B, H, T, D)
    _, theirs = model._apply_relative_key_position_encoding(layer, q, k)
    encoding = installed(f"shaw(window={W})", H, D, causal=False)
    encoding.load_state_dict({"table": TABLE.double()[None]})
    got = tile(encoding, q, k, torch.zeros(B, T, H * D))
    meet.agrees("shaw", "transformers Wav2Vec2-BERT", theirs, got, loop(q))
