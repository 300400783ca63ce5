"""The laws of position encodings, measured in float64 on random content.

Shapes: B batch, H heads, N tokens, D head channels, C model channels.
"""

import copy
from collections.abc import Callable

import torch
from torch import Tensor

from grape_bench.attention import Cache, attend
from grape_bench.backends import Mask
from grape_bench.bias import LowRank
from grape_bench.encodings import At, Encoding
from grape_bench.errors import Unsupported
from grape_bench.probe import FAR, KV_HEADS, SITE, D, H, Probe
from grape_bench.residual import gap, largest, past_gap, ratio

_TOKENS, _LONG = 24, 80  # tokens, the second beyond the training length
_SHIFT = 1000  # tokens, of the origin
_PLACES = 64  # tokens, up to which G(a) is multiplied with G(b)


def relative(probe: Probe) -> float:
    """A shift of the origin moves no output, and G(a)^T G(b) = G(0)^T G(b - a) where positions alone decide G."""
    here = torch.arange(_TOKENS)
    base = probe.outputs(here)
    moved = max(gap(probe.outputs(here + _SHIFT, uniform=flag), base) for flag in (False, True))
    q, k, content = probe.turns(0, _PLACES + 1)
    if content:
        return moved
    q = q[:: H // KV_HEADS]  # a query head of each key head
    a, b = torch.triu_indices(_PLACES + 1, _PLACES + 1)
    return max(moved, largest(q[:, a].mT @ k[:, b] - q[:, :1].mT @ k[:, b - a]))


def identity(probe: Probe) -> float | None:
    """G(0) = 1."""
    return _worst(probe, lambda g: g[:, 0] - torch.eye(D))


def inverse(probe: Probe) -> float | None:
    """G(-n) G(n) = 1, where positions alone decide."""
    q, k, content = probe.turns(-_PLACES, 2 * _PLACES + 1)
    if content or not _moves(q, k):
        return None
    return max(largest(g.flip(1) @ g - torch.eye(D)) for g in (q, k))


def homomorphism(probe: Probe) -> float | None:
    """G(a) G(b) = G(a + b)."""
    places = torch.arange(_PLACES + 1)
    total = places[:, None] + places
    return _worst(probe, lambda g: g[:, places, None] @ g[:, None, places] - g[:, total])


def isometric(probe: Probe) -> float | None:
    """G(n)^T G(n) = 1."""
    return _worst(probe, lambda g: g[:, : _PLACES + 1].mT @ g[:, : _PLACES + 1] - torch.eye(D))


def unipotent(probe: Probe) -> float | None:
    """On fixed content the bias grows in proportion to the distance: b(s d) = s b(d)."""
    here = torch.arange(_LONG)
    base = probe.bias(here)
    if base is None:
        return None
    gaps = []
    for stretch in (2, 3):
        stretched = probe.bias(stretch * here)
        assert stretched is not None
        gaps.append(past_gap(stretched, stretch * base))
    return max(gaps)


def path(probe: Probe) -> float | None:
    """b(i, j) = b(i, l) + b(l, j) for i >= l >= j."""
    found = probe.bias(torch.arange(_LONG))
    if found is None:
        return None
    past = found.masked_fill(torch.ones(_LONG, _LONG).triu(1).bool(), torch.nan)
    through = slice(None, None, 7)  # some of the places l
    steps = past[..., :, through, None] + past[..., None, through, :]
    return ratio(steps - past[..., :, None, :], past)


def reflection(probe: Probe) -> float | None:
    """In an encoder, outputs do not see whether positions run forwards or backwards."""
    if probe.encoder is None:
        return None
    here = torch.arange(_LONG)
    base, mirrored = (probe.outputs(one, encoding=probe.encoder, causal=False) for one in (here, _LONG - 1 - here))
    return gap(mirrored, base)


def causality(probe: Probe) -> float:
    """Later tokens change no earlier output."""
    here, cut = torch.arange(_TOKENS), _TOKENS // 2
    tokens = probe.tokens(_TOKENS)
    changed = torch.cat((tokens[:, :cut], tokens[:, cut:].flip(1) + 1), dim=1)
    base, other = (probe.outputs(here, tokens=one, uniform=True)[:, :, :cut] for one in (tokens, changed))
    return gap(other, base)


def prefix(probe: Probe) -> float:
    """An output does not depend on how many tokens follow."""
    whole = probe.outputs(torch.arange(3 * SITE.train_length), uniform=True)
    lengths = (_TOKENS, SITE.train_length + 5)
    return max(gap(probe.outputs(torch.arange(n), uniform=True), whole[:, :, :n]) for n in lengths)


def streaming(probe: Probe) -> float:
    """Tokens that arrive in chunks against a cache, from any offset, equal all at once."""
    sizes, start = (*[1] * 5, 70, 1, 3, 1), 7
    positions = torch.arange(start, start + sum(sizes))
    cache, rows, encoding = Cache(sum(sizes)), [], probe.decoder
    for tokens, where in zip(probe.tokens(sum(sizes)).split(sizes, 1), positions.split(sizes), strict=True):
        x = encoding.embed(tokens, where)
        at = At(x, where, where, uniform=True)
        rows.append(attend(encoding, probe.oracle, probe.projected(x, tokens), at, Mask(True), cache))
    return gap(torch.cat(rows, dim=2), probe.outputs(positions, uniform=True))


def heads(probe: Probe) -> float:
    """A head's output sees queries and keys of its own group alone."""
    x = probe.tokens(_TOKENS)
    at = At(x, torch.arange(_TOKENS), torch.arange(_TOKENS), uniform=True)
    qkv = probe.projected(x, x)
    others = [torch.cat((one[:, : one.shape[1] // 2], one[:, one.shape[1] // 2 :] + 1), dim=1) for one in qkv]
    base, changed = (
        attend(probe.decoder, probe.oracle, (one[0], one[1], one[2]), at, Mask(True)) for one in (qkv, others)
    )
    return gap(changed[:, : H // 2], base[:, : H // 2])


def batch(probe: Probe) -> float:
    """A sequence's output does not see the other sequences of its batch."""
    here = torch.arange(_TOKENS)
    both = probe.outputs(here, uniform=True)
    return gap(probe.outputs(here, uniform=True, tokens=probe.tokens(_TOKENS)[1:]), both[1:])


def dtype(probe: Probe) -> float | None:
    """Share of places up to 131072 at which half precision takes two positions for one."""
    try:
        exact = probe.far()
    except Unsupported:
        return None
    lost = []
    for half in (torch.bfloat16, torch.float16):
        cast = copy.deepcopy(exact).to(half)
        for place in FAR:
            moved = _one_key_moved(probe, exact, place, torch.float64)
            seen = moved > 1e-2
            lost.append(seen and not _one_key_moved(probe, cast, place, half) > moved / 2)
    return sum(lost) / len(lost)


def lift(probe: Probe) -> float | None:
    """The channels of a lift give the tile up to a constant in each row."""
    value, _ = probe.bias_value(torch.arange(_TOKENS))
    gaps = []
    for one in value.parts() if value else ():
        if isinstance(one, LowRank):
            u, v = one.lift()
            rest = LowRank(u, v).tile() - one.tile()
            gaps.append(ratio(rest - rest.mean(dim=-1, keepdim=True), one.tile()))
    return max(gaps) if gaps else None


# What holds only where an encoding says so in `laws`, and what holds unless it says so in `breaks`.
DECLARED: tuple[Callable[[Probe], float | None], ...] = (
    relative, identity, inverse, homomorphism, isometric, unipotent, path, reflection,
)  # fmt: skip
UNIVERSAL: tuple[Callable[[Probe], float | None], ...] = (causality, prefix, streaming, heads, batch, dtype, lift)


def turned(probe: Probe) -> bool:
    """Whether it turns queries or keys at all."""
    return _moves(*probe.turns(0, _TOKENS)[:2])


def _moves(*turns: Tensor) -> bool:
    return any(largest(g - torch.eye(D)) > 1e-12 for g in turns)


def _worst(probe: Probe, violation: Callable[[Tensor], Tensor]) -> float | None:
    """The largest entry over queries and keys; None where nothing is turned."""
    q, k, _ = probe.turns(0, 2 * _PLACES + 1)
    return max(largest(violation(g)) for g in (q, k)) if _moves(q, k) else None


def _one_key_moved(probe: Probe, encoding: Encoding, place: int, dtype: torch.dtype) -> float:
    """How much an output changes when the last but one of ten keys moves by one token."""
    tokens = probe.tokens(10).to(dtype)
    keys = torch.arange(place - 9, place + 1)
    ends = []
    for where in (place - 1, place):
        at = keys.clone()
        at[-2] = where
        ends.append(probe.outputs(at, encoding=encoding, tokens=tokens, rows=slice(-1, None), causal=False).double())
    return (ends[0] - ends[1]).abs().max().item()
