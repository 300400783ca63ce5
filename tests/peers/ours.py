"""Our encodings as these tests call them: in float64, at positions 0 .. T - 1.

Shapes: B batch, H heads, T tokens, D head channels, C model channels.
"""

import torch
from torch import Tensor

from grape_bench.attention import attend
from grape_bench.backends import Mask
from grape_bench.backends.eager import Eager
from grape_bench.encodings import At, Encoding, Site, build


def installed(expression: str, heads: int = 2, head_dim: int = 8, *, causal: bool = True, length: int = 64) -> Encoding:
    """As `build` makes it, for as many key heads as heads; `length` is the training length and the longest."""
    site = Site(heads * head_dim, heads, heads, head_dim, length, length, causal=causal)
    return build(expression, site).double()


def places(x: Tensor) -> At:
    """Of a layer's input x (B, T, C)."""
    positions = torch.arange(x.shape[1])
    return At(x.double(), positions, positions, uniform=True)


def normal(*shape: int, seed: int = 0) -> Tensor:
    """Random numbers in float32, as a peer wants them."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def tile(encoding: Encoding, q: Tensor, k: Tensor, x: Tensor, scores: Tensor | None = None) -> Tensor:
    """The bias (B or 1, H, T, T) that it adds to the scaled scores."""
    _, _, bias = encoding.encode(q.double(), k.double(), places(x))
    assert bias is not None
    return bias.tile(scores=scores)


def attended(encoding: Encoding, q: Tensor, k: Tensor, v: Tensor, x: Tensor) -> Tensor:
    """Outputs (B, H, T, D) of causal attention."""
    return attend(encoding, Eager(), (q.double(), k.double(), v.double()), places(x), Mask(causal=True))
