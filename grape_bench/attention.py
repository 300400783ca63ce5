"""Attention with a position encoding: normalise q and k, keep state, rotate, then a backend with the bias.

Shapes: B batch, H heads, T queries, S keys, D head channels, C model channels.
"""

from typing import Any

import torch
from torch import Tensor, nn

from grape_bench.backends import Backend, Mask
from grape_bench.encodings import At, Encoding, Site


class Cache:
    """What later tokens need of earlier ones, in buffers that are filled in place.

    It keeps rotated keys and values (B, kv_heads, S, D), their positions, the encoding's features beside them, and
    what the encoding continues from.

    Args:
        capacity: the number of keys there is room for; buffers take their other sizes from the first keys.
    """

    def __init__(self, capacity: int):
        self.capacity, self.length = capacity, 0
        self.carry: Any = None
        self.last: tuple[Tensor, Tensor] | None = None  # the newest key and value, unshifted
        self._buffers: dict[str, Tensor] = {}

    def append(self, k: Tensor, v: Tensor, features: Tensor | None, positions: Tensor) -> None:
        """Put new keys behind the old ones.

        Raises:
            ValueError: there is no room for them.
        """
        end = self.length + k.shape[-2]
        if end > self.capacity:
            raise ValueError(f"a cache for {self.capacity} keys cannot take key number {end}")
        self._write("k", k, -2, end)
        self._write("v", v, -2, end)
        self._write("positions", positions, -1, end)
        if features is not None:
            self._write("features", features, -2, end)
        self.length = end

    def view(self, name: str) -> Tensor | None:
        """What is filled of `k`, `v`, `features` or `positions`; None where the encoding keeps no features."""
        whole = self._buffers.get(name)
        return None if whole is None else whole.narrow(-1 if name == "positions" else -2, 0, self.length)

    def _write(self, name: str, new: Tensor, axis: int, end: int) -> None:
        if name not in self._buffers:
            shape = list(new.shape)
            shape[axis] = self.capacity
            self._buffers[name] = new.new_zeros(shape)
        self._buffers[name].narrow(axis, self.length, end - self.length).copy_(new)


def attend(
    encoding: Encoding,
    backend: Backend,
    qkv: tuple[Tensor, Tensor, Tensor],
    at: At,
    mask: Mask,
    cache: Cache | None = None,
) -> Tensor:
    """The attention operation with everything that the encoding does to it: outputs (B, H, T, D).

    Autocast ends here: it would take running sums and products of positions down to half precision.

    Args:
        qkv: q (B, H, T, D) and new k, v (B, kv_heads, S, D), normalised where the model does and not rotated.
        at: positions of these queries and these new keys.
        cache: earlier keys; the new ones are put behind them, and queries see all.
    """
    q, k, v = qkv
    with torch.autocast(q.device.type, enabled=False):
        features, carry = encoding.state(k, at, cache.carry if cache else None)
        turned, k = encoding.rotate(q, k, features, at)
        if cache is not None:
            cache.append(k, v, features, at.k_pos)
            cache.carry = carry
            k, v, features = _kept(cache, "k"), _kept(cache, "v"), cache.view("features")
            at = at.beside(_kept(cache, "positions"))
        return backend.attend(turned, k, v, encoding.bias(q, features, at), mask)


def _kept(cache: Cache, name: str) -> Tensor:
    kept = cache.view(name)
    assert kept is not None, f"nothing was appended, so there is no {name}"
    return kept


class Attention(nn.Module):
    """Multi-head attention of one layer.

    Args:
        site: its width, heads and direction.
        encoding, backend: what tells positions, and what computes.
        qk_norm: normalise q and k over D before the encoding sees them.
        kv_shift: mix each key and value with the one before it.
    """

    def __init__(
        self, site: Site, encoding: Encoding, backend: Backend, *, qk_norm: bool = False, kv_shift: bool = False
    ):
        super().__init__()
        self.site, self.encoding, self.backend = site, encoding, backend
        keys = site.kv_heads * site.head_dim
        self.query = nn.Linear(site.width, site.heads * site.head_dim)
        self.key, self.value = nn.Linear(site.width, keys), nn.Linear(site.width, keys)
        self.out = nn.Linear(site.heads * site.head_dim, site.width)
        self.norm_q = nn.RMSNorm(site.head_dim) if qk_norm else nn.Identity()
        self.norm_k = nn.RMSNorm(site.head_dim) if qk_norm else nn.Identity()
        self.shift = Shift(site) if kv_shift else None

    def forward(self, at: At, mask: Mask, cache: Cache | None = None) -> Tensor:
        """Outputs (B, T, C) of the last T of the tokens at.x (B, S, C), T being the number of query positions."""
        rows = at.q_pos.shape[-1]
        q = self.norm_q(self._split(self.query(at.x[:, -rows:]), self.site.heads))
        k, v = (self._split(layer(at.x), self.site.kv_heads) for layer in (self.key, self.value))
        if self.shift is not None:
            k, v = self.shift(k, v, at.x, mask, cache)
        out = attend(self.encoding, self.backend, (q, self.norm_k(k), v), at, mask, cache)
        merged: Tensor = self.out(out.transpose(1, 2).flatten(-2))
        return merged

    def _split(self, x: Tensor, heads: int) -> Tensor:
        return x.view(*x.shape[:-1], heads, self.site.head_dim).transpose(1, 2)


class Shift(nn.Module):
    """KV shift: each key and value is mixed with that of the token before, by a gate of the token.

        k'_t = a_t k_{t-1} + (1 - a_t) k_t,   a_t = sigmoid(W x_t),   k_{-1} = 0

    It touches values, so it is an option of the model and no encoding.

    Args:
        site: a gate for each of its key heads, one for keys and one for values.

    Source: an option of the models in Zhang et al. 2025, arXiv:2512.07805. There the first token of a chunk forgets the
    state that it is given; here it does not.
    """

    def __init__(self, site: Site):
        super().__init__()
        self.keys = nn.Linear(site.width, site.kv_heads, bias=False)
        self.values = nn.Linear(site.width, site.kv_heads, bias=False)

    def forward(self, k: Tensor, v: Tensor, x: Tensor, mask: Mask, cache: Cache | None) -> tuple[Tensor, Tensor]:
        """New keys and values (B, kv_heads, S, D) of the layer's input x (B, S, C), mixed."""
        last = (cache.last if cache else None) or (torch.zeros_like(k[:, :, :1]), torch.zeros_like(v[:, :, :1]))
        if cache is not None:
            cache.last = k[:, :, -1:], v[:, :, -1:]
        joined = mask.joined(k.shape[2])
        gates = (gate(x).sigmoid().transpose(1, 2)[..., None] for gate in (self.keys, self.values))
        mixed = [_mix(one, before, gate, joined) for one, before, gate in zip((k, v), last, gates, strict=True)]
        return mixed[0], mixed[1]


def _mix(new: Tensor, last: Tensor, gate: Tensor, joined: Tensor | None) -> Tensor:
    before = torch.cat((last, new[:, :, :-1]), dim=2)
    if joined is not None:
        before = before.masked_fill(~joined, 0.0)
    return gate * before + (1 - gate) * new
