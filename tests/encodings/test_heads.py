"""Which heads share what is learned: the table of rows, and every encoding that offers the choice."""

import pytest
import torch
from torch import Tensor

from grape_bench.encodings import At, Encoding, Site, build
from grape_bench.encodings._heads import rows_of
from grape_bench.registry import Registry

H, D = 5, 4
ROWS = {"own": [0, 1, 2, 3, 4], "shared": [0, 0, 0, 0, 0], "half": [0, 0, 1, 2, 3]}  # of five heads
NAMES = [name for name, plugin in Registry("encodings").items() if "heads" in plugin.options and not plugin.wraps]
BIASES = ["clamp", "cope", "cyclic", "fire", "fourier", "kerple", "log", "shaw", "t5", "transformer_xl"]


def tile(encoding: Encoding) -> Tensor:
    """(H, T, S), from one content for all heads."""
    generator, at = torch.Generator().manual_seed(0), torch.arange(7)
    q, k = (torch.randn(1, 1, 7, D, generator=generator).double().expand(-1, H, -1, -1) for _ in range(2))
    call = At(torch.randn(1, 7, H * D, generator=generator).double(), at, at, uniform=True)
    features, _ = encoding.state(k, call, None)
    bias = encoding.bias(q, features, call)
    assert bias is not None
    return bias.tile(scores=q @ k.transpose(-1, -2)).tril()[0]


def made(name: str, heads: str) -> Encoding:
    encoding = build(f"{name}(heads={heads!r})", Site(H * D, H, H, D, 16, 16, causal=True)).double()
    with torch.no_grad():
        for seed, one in enumerate(encoding.parameters()):
            drawn = torch.rand(one.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
            one.copy_(0.5 + drawn)
    return encoding


@pytest.mark.parametrize("sharing", ROWS)
def test_the_rows_are_those_of_the_article(sharing: str) -> None:
    assert rows_of(H, sharing).tolist() == ROWS[sharing]  # type: ignore[arg-type]


def test_every_learned_bias_offers_the_choice() -> None:
    assert set(BIASES) <= set(NAMES)


@pytest.mark.parametrize("sharing", ROWS)
@pytest.mark.parametrize("name", BIASES)
def test_heads_that_share_a_row_have_one_bias_and_others_do_not(name: str, sharing: str) -> None:
    got, rows = tile(made(name, sharing)), ROWS[sharing]
    for h in range(H):
        for other in range(h):
            apart = (got[h] - got[other]).abs().max().item()
            assert (apart < 1e-12) == (rows[h] == rows[other])


@pytest.mark.parametrize("name", BIASES)
def test_a_table_has_as_many_rows_as_are_read(name: str) -> None:
    """A head's share of the parameters is the same under every choice."""
    own, shared, half = (sum(one.numel() for one in made(name, sharing).parameters()) for sharing in ROWS)
    assert (own - shared) % (H - 1) == 0
    assert own - half == (own - shared) // (H - 1)
    assert own > half > shared
