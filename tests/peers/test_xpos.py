"""xPos: scores of queries and keys that are turned, and stretched by position."""

import math

import torch
from ours import installed, normal, places
from torch import Tensor

from grape_bench.encodings import At

B, H, T, D = 1, 2, 48, 32
Q, K = normal(2, B, H, T, D)


def ours() -> Tensor:
    """Scores (B, H, T, T), not divided by sqrt(D)."""
    q, k = installed("xpos", H, D).rotate(Q.double(), K.double(), None, places(Q[:, 0]))
    return q @ k.mT


def loop() -> Tensor:
    """<R(i w) q, R(j w) k> zeta^((i - j) / 512), plane by plane."""
    out = torch.zeros(B, H, T, T, dtype=torch.float64)
    q, k = (torch.view_as_complex(x.double().reshape(B, H, T, D // 2, 2)) for x in (Q, K))
    for m in range(D // 2):
        zeta = (2 * m + 0.4 * D) / (1.4 * D)
        for i in range(T):
            for j in range(T):
                far = i - j
                turn = complex(math.cos(far * 10_000 ** (-2 * m / D)), math.sin(far * 10_000 ** (-2 * m / D)))
                met = q[..., i, m] * k[..., j, m].conj() * turn
                out[..., i, j] += met.real * zeta ** (far / 512)
    return out


def torchscale(x: Tensor, *, key: bool, offset: int = 0) -> Tensor:
    from torchscale.component.xpos_relative_position import XPOS

    return XPOS(D)(x.flatten(0, 1), offset=offset, downscale=key).reshape(x.shape)


def test_whole_texts_score_alike(meet) -> None:
    from rotary_embedding_torch import RotaryEmbedding
    from x_transformers.x_transformers import RotaryEmbedding as Embedding
    from x_transformers.x_transformers import apply_rotary_pos_emb as apply

    got, expected = ours(), loop()
    meet.agrees("xpos", "torchscale", torchscale(Q, key=False) @ torchscale(K, key=True).mT, got, expected, atol=5e-5)
    angles, scale = Embedding(D, use_xpos=True).forward_from_seq_len(T)
    q, k = apply(Q, angles, scale), apply(K, angles, scale**-1)
    meet.agrees("xpos", "x-transformers", q @ k.mT, got, expected, atol=5e-5)
    q, k = RotaryEmbedding(D, use_xpos=True).rotate_queries_and_keys(Q, K)
    meet.agrees("xpos", "rotary-embedding-torch", q @ k.mT, got, expected, atol=5e-5)


def decoded() -> Tensor:
    """Ours of the last query, after its keys were turned one by one."""
    encoding = installed("xpos", H, D)

    def step(j: int) -> tuple[Tensor, Tensor]:
        here, (q, k) = torch.tensor([j]), (x[:, :, j : j + 1].double() for x in (Q, K))
        return encoding.rotate(q, k, None, At(q[:, 0], here, here, uniform=True))

    query, _ = step(T - 1)
    return query @ torch.cat([step(j)[1] for j in range(T)], dim=2).mT


def test_decoding_with_rotary_embedding_torch_is_not_its_whole_text(meet) -> None:
    """Queries are scaled from the middle of the queries, keys from the middle of the keys."""
    from rotary_embedding_torch import RotaryEmbedding

    q, k = RotaryEmbedding(D, use_xpos=True).rotate_queries_with_cached_keys(Q[:, :, -1:], K)
    theirs, fault = q @ k.mT, "decoding: two centres"
    meet.is_wrong("xpos", "rotary-embedding-torch", theirs, decoded(), loop()[:, :, -1:], by=0.3263, fault=fault)


def test_keys_of_torchscale_keep_the_centre_of_the_length_they_were_cached_at(meet) -> None:
    keys = torch.cat([torchscale(K[:, :, j : j + 1], key=True, offset=j) for j in range(T)], dim=2)
    theirs = torchscale(Q[:, :, -1:], key=False, offset=T - 1) @ keys.mT
    expected, fault = loop()[:, :, -1:], "cached keys: stale centre"
    meet.is_wrong("xpos", "torchscale", theirs, decoded(), expected, by=0.2969, fault=fault)
