"""Decoders small enough to read, one for each way in which position enters, and what their faulty sisters override."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

VOCABULARY, WIDTH, HEADS, CHANNELS, LAYERS, LONGEST = 48, 24, 3, 8, 2, 64


class Sight(NamedTuple):
    """What attention is told: positions of queries (B, T) and keys (B, S), and who sees whom (B, 1, T, S)."""

    q_pos: Tensor
    k_pos: Tensor
    causal: Tensor
    real: Tensor

    @property
    def allowed(self) -> Tensor:
        own = self.q_pos[:, None, :, None] == self.k_pos[:, None, None, :]
        return self.causal & (self.real | own)  # padding sees itself, so that no row is empty


class Attention(nn.Module):
    """Score, scale, bias, mask, softmax; without a position of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, x: Tensor, sight: Sight, past: tuple[Tensor, Tensor] | None) -> tuple[Tensor, ...]:
        q, k, v = (one(x).unflatten(-1, (HEADS, CHANNELS)).transpose(1, 2) for one in (self.q, self.k, self.v))
        q, k = self.place(q, sight.q_pos), self.place(k, sight.q_pos)
        if past:
            k, v = torch.cat((past[0], k), dim=2), torch.cat((past[1], v), dim=2)
        seen = self.weights(q @ k.mT / CHANNELS**0.5, sight).to(v) @ v
        return self.out(seen.transpose(1, 2).flatten(2)), k, v

    def place(self, x: Tensor, positions: Tensor) -> Tensor:
        return x

    def bias(self, sight: Sight) -> Tensor:
        return torch.zeros(1)

    def weights(self, scores: Tensor, sight: Sight) -> Tensor:
        return (scores + self.bias(sight)).masked_fill(~sight.allowed, float("-inf")).softmax(-1)


class Rotary(Attention):
    """RoPE, from frequencies that are kept."""

    def __init__(self) -> None:
        super().__init__()
        self.frequencies = 10_000.0 ** -(torch.arange(0, CHANNELS, 2) / CHANNELS)

    def angles(self, positions: Tensor) -> Tensor:
        return positions[..., None].float() * self.frequencies

    def place(self, x: Tensor, positions: Tensor) -> Tensor:
        angles = self.angles(positions)[:, None]
        cos, sin = angles.cos(), angles.sin()
        one, two = x.chunk(2, dim=-1)
        return torch.cat((one * cos - two * sin, one * sin + two * cos), dim=-1).to(x.dtype)


class Alibi(Attention):
    """A linear bias of the distance."""

    def bias(self, sight: Sight) -> Tensor:
        slopes = 2.0 ** -torch.arange(1.0, HEADS + 1)
        distance = (sight.q_pos[:1, :, None] - sight.k_pos[:1, None, :]).float()
        return -slopes[:, None, None] * distance[:, None].abs()


class Layer(nn.Module):
    """Attention and nothing else, on a residual stream."""

    def __init__(self, attention: type[Attention]) -> None:
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(WIDTH), attention()

    def forward(self, x: Tensor, sight: Sight, past: tuple[Tensor, Tensor] | None) -> tuple[Tensor, ...]:
        made, *kept = self.attention(self.norm(x), sight, past)
        return (x + made, *kept)


class Decoder(nn.Module):
    """A decoder with positions, a padding mask and a cache.

    Args:
        attentions: one class for all layers, or one for each.
        absolute: whether a learned position is added to the embeddings.
    """

    causal = True

    def __init__(self, *attentions: type[Attention], absolute: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.absolute = nn.Embedding(LONGEST, WIDTH) if absolute else None
        chosen = attentions * LAYERS if len(attentions) == 1 else attentions
        self.layers = nn.ModuleList(Layer(one) for one in chosen)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def start(self, past: tuple[tuple[Tensor, Tensor], ...] | None) -> int:
        return past[0][0].shape[2] if past else 0

    def forward(self, tokens, positions=None, mask=None, past=None):
        start, (B, T) = self.start(past), tokens.shape
        seen = past[0][0].shape[2] if past else 0
        own = positions if positions is not None else torch.arange(start, start + T).expand(B, T)
        sight = self.sight(own, seen, mask)
        x = self.embed(tokens, own)
        kept = []
        for layer, before in zip(self.layers, past or (None,) * LAYERS, strict=True):
            x, *pair = layer(x, sight, before)
            kept.append(tuple(pair))
        return self.head(x), tuple(kept)

    def embed(self, tokens: Tensor, positions: Tensor) -> Tensor:
        x = self.tokens(tokens)
        return x if self.absolute is None else x + self.absolute(positions)

    def sight(self, q_pos: Tensor, seen: int, mask: Tensor | None) -> Sight:
        (B, T), S = q_pos.shape, seen + q_pos.shape[1]
        k_pos = torch.cat((q_pos[:, :1] - seen + torch.arange(seen), q_pos), dim=1)
        causal = torch.ones(1, 1, T, S, dtype=torch.bool).tril(seen) if self.causal else torch.ones(1, 1, T, S).bool()
        real = torch.ones(B, S, dtype=torch.bool) if mask is None else mask.bool()
        return Sight(q_pos, k_pos, causal, real[:, None, None, :])
