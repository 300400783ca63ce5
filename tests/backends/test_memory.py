"""What each backend holds at once: no bias for each sequence, and but for two no matrix of all pairs."""

import pytest
import torch
from by_hand import FIXED, KINDS, MAKERS, H, Largest, attend, every, inputs, make_bias, padded
from torch import Tensor
from torch.nn import functional as F

from grape_bench.backends import Mask


@every
@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("kind", ["toeplitz", "low_rank", "total"])
def test_no_bias_is_expanded_over_the_batch(
    name: str, kind: str, padding: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One matrix of T x S a head serves all sequences, also beside padding."""
    masks: list[Tensor] = []
    real = F.scaled_dot_product_attention

    def spy(*args: Tensor, attn_mask: Tensor | None = None, **options: object) -> Tensor:
        if attn_mask is not None:
            masks.append(attn_mask)
        return real(*args, attn_mask=attn_mask, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(F, "scaled_dot_product_attention", spy)
    tiles: list[Tensor] = []
    bias, _ = make_bias(kind, 6, 6)
    assert bias is not None
    tile = bias.tile

    def watched(*args: object, **options: object) -> Tensor:
        tiles.append(tile(*args, **options))  # type: ignore[arg-type]
        return tiles[-1]

    monkeypatch.setattr(bias, "tile", watched)
    attend(name, inputs(6, 6), bias, Mask(True, padded(6) if padding else None))
    assert all(one.shape[0] == 1 for one in masks + tiles)
    assert tiles or masks or name not in ("eager", "sdpa")


@every
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("learning", [False, True])
def test_no_backend_but_two_holds_a_whole_matrix(name: str, kind: str, learning: bool) -> None:
    """Not in one tensor, forward or backward; sdpa and eager do, or this test would see nothing."""
    if name in ("eager", "sdpa") and (learning or kind not in ("nothing", "low_rank")):
        pytest.skip("once is enough")
    if name not in ("eager", "sdpa") and not learning and kind not in FIXED:
        pytest.skip("what learns takes the same way, and more")
    T = 1024
    made = MAKERS[kind](T, T) if kind != "nothing" else None
    own = [leaf.float().requires_grad_(learning) for leaf in made.leaves()] if made else []
    bias = made.with_leaves(own) if made else None
    qkv = [one.float().requires_grad_() for one in inputs(T, T, 2)]
    with Largest() as largest:
        out = attend(name, qkv, bias, Mask(causal=True))
        torch.autograd.grad(out, [*qkv, *own * learning], torch.ones_like(out), materialize_grads=True)
    if name == "eager" or (name == "sdpa" and kind != "nothing"):
        assert largest.size >= 4 * H * T * T
    else:
        assert largest.size < 4 * H * T * T / 2
