"""Transformer-XL: waves of the distance, which a peer shifts into place and we find by the angle sum."""

import math

import torch
from ours import installed, normal, tile
from torch import Tensor

B, H, T, D = 2, 2, 20, 8
C = H * D
Q, K, U, V, WAVES = normal(B, H, T, D), normal(B, H, T, D, seed=1), *normal(2, H, D, seed=2), normal(H, D, C, seed=3)


def waves(distance: int) -> Tensor:
    """Sines and then cosines, (C,)"""
    angles = [distance * 10_000 ** (-2 * m / C) for m in range(C // 2)]
    return torch.tensor([*map(math.sin, angles), *map(math.cos, angles)], dtype=torch.float64)


def loop() -> Tensor:
    """What both learned queries and the waves add to the scaled scores, (B, H, T, T)."""
    out = torch.zeros(B, H, T, T, dtype=torch.float64)
    for i in range(T):
        for j in range(T):
            seen = torch.stack([WAVES[h].double() @ waves(i - j) for h in range(H)])
            met = (Q[:, :, i].double() + V.double()) * seen
            out[..., i, j] = (met + U.double() * K[:, :, j].double()).sum(dim=-1) / math.sqrt(D)
    return out


def test_biases_are_those_of_xlnet(meet) -> None:
    from transformers import XLNetConfig
    from transformers.models.xlnet.modeling_xlnet import XLNetModel, XLNetRelativeAttention

    model = XLNetModel(XLNetConfig(vocab_size=8, d_model=C, n_layer=1, n_head=H, d_inner=C))
    seen = torch.einsum("rbc,hdc->rbhd", model.relative_positional_encoding(T, T, bsz=B), WAVES)
    q, k = (x.permute(2, 0, 1, 3) for x in (Q, K))  # (T, B, H, D)
    shifted = XLNetRelativeAttention.rel_shift_bnij(torch.einsum("ibhd,rbhd->bhir", q + V, seen), klen=T)
    theirs = (shifted + torch.einsum("hd,jbhd->bhj", U, k)[:, :, None]) / math.sqrt(D)
    encoding = installed("transformer_xl", H, D, causal=False)
    encoding.load_state_dict({"u": U.double(), "v": V.double(), "waves": WAVES.double()})
    got = tile(encoding, Q, K, torch.zeros(B, T, C))
    meet.agrees("transformer_xl", "transformers XLNet", theirs, got, loop(), atol=5e-5)
