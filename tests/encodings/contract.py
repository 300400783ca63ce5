"""What the tests of the contract share: every encoding, and random numbers for all that it is made of.

Shapes: B batch, H heads, D head channels, C model channels.
"""

import zlib

import pytest
import torch
from torch import Tensor, nn

from grape_bench.encodings import Encoding, Site
from grape_bench.registry import Registry

REGISTRY = Registry("encodings")
B, H, D, C = 2, 4, 8, 32
SITE = Site(width=C, heads=H, kv_heads=H, head_dim=D, train_length=512, longest=17_000, causal=True)

every = pytest.mark.parametrize(
    "name", [f"{name}({plugin.facts['around']})" if plugin.wraps else name for name, plugin in REGISTRY.items()]
)


def draw(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def scrambled(module: nn.Module) -> nn.Module:
    """Every parameter of its encodings drawn at random, so that tables that start at zero hide nothing."""
    for name, one in module.named_modules():
        if isinstance(one, Encoding):
            for label, parameter in one.named_parameters(recurse=False):
                seed = zlib.crc32(f"{name}/{label}".encode())
                with torch.no_grad():
                    parameter.copy_(0.5 * draw(seed, *parameter.shape))
    return module
