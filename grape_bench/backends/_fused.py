"""The plain fused kernel, and what can ride on it without a matrix: a band of distances, padding, documents.

Shapes: B batch, H query heads, T queries, S keys, D head channels.
"""

from itertools import accumulate, pairwise

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right

from grape_bench.backends import Mask
from grape_bench.bias import Bias, Toeplitz
from grape_bench.errors import Unsupported

_FUSED = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION]
_HIDE = 2.0**14  # a hidden key scores minus its square times the scale; float16 ends at 65504
_NEVER = float("-inf")


def fused(q: Tensor, k: Tensor, v: Tensor, mask: Mask, scale: float, band: Tensor | None = None) -> Tensor:
    """Attention by a fused kernel or not at all, in memory that grows with T and not with T x S.

    Args:
        q: (B, H, T, D); k: (B, kv_heads, S, D); v: (B, kv_heads, S, up to D), padded to D for the kernel's sake.
        band: (1 or H, T + S - 1) bias by distance from the largest to the smallest, without a gradient; CPU only.

    Raises:
        Unsupported: torch would have left its fused kernels, or a document lies in several pieces.
    """
    if mask.documents is not None:
        return _by_document(q, k, v, mask, scale, band)
    width = v.shape[-1]
    k, v = mask.clean(k), mask.clean(v)
    if mask.keys is not None:
        q, k = hide(q, k, mask.keys)
    rows, cols = q.shape[-2], k.shape[-2]
    causal = mask.causal and rows > 1
    if causal and rows == cols and band is None:
        return run(q, k, v, scale, is_causal=True)[..., :width]
    if causal and q.is_cuda:
        return run(q, k, v, scale, attn_mask=causal_lower_right(rows, cols))[..., :width]
    if causal:
        band = q.new_zeros(1, rows + cols - 1) if band is None else band
        band = torch.cat((band[:, :cols], torch.full_like(band[:, cols:], _NEVER)), dim=-1)
    if band is None:
        return run(q, k, v, scale)[..., :width]
    # With keys in reverse, i - j is i + j' less a constant: all rows are windows of one band, a view in its memory.
    band = band.flip(-1).contiguous()
    hankel = band.as_strided((1, len(band), rows, cols), (band.numel(), band.shape[-1], 1, 1))
    return run(q, k.flip(-2), v.flip(-2), scale, attn_mask=hankel)[..., :width]


def run(
    q: Tensor, k: Tensor, v: Tensor, scale: float, *, attn_mask: Tensor | None = None, is_causal: bool = False
) -> Tensor:
    """`scaled_dot_product_attention`, which may not leave its fused kernels in silence.

    Torch takes its unfused path for values narrower than keys, for a mask of three dimensions and for a mask with a
    gradient. Under autocast it would round a float32 mask.

    Raises:
        Unsupported: no fused kernel takes this.
    """
    grouped = k.shape[1] != q.shape[1]
    width = max(q.shape[-1], v.shape[-1])
    width += -width % 8 if q.is_cuda else 0  # CUDA kernels want widths of whole vectors
    q, k, v = (one if one.shape[-1] == width else F.pad(one, (0, width - one.shape[-1])) for one in (q, k, v))
    try:
        with sdpa_kernel(_FUSED), torch.autocast(q.device.type, enabled=False):
            return F.scaled_dot_product_attention(
                q, k, v, attn_mask=attn_mask, is_causal=is_causal, scale=scale, enable_gqa=grouped
            )
    except RuntimeError as error:
        if "No available kernel" not in str(error):
            raise
        raise Unsupported("torch has no fused kernel for this call, and would have built the whole matrix") from None


def hide(q: Tensor, k: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    """Hide padding by one more channel, in which queries are large and hidden keys as large below zero.

    Args:
        keys: (B, S), False at padding. A row that sees padding alone averages its values, which are zero.
    """
    hidden = torch.zeros_like(k[..., :1]).masked_fill(~keys[:, None, :, None], -_HIDE)
    return torch.cat((q, q.new_full((*q.shape[:-1], 1), _HIDE)), -1), torch.cat((k, hidden), -1)


def band_of(parts: list[Bias], q: Tensor) -> Tensor:
    """The sum of some biases by distance, (H, T + S - 1), from the largest distance to the smallest.

    Raises:
        Unsupported: one of them is no such thing, or learns: a fused kernel gives its mask no gradient.
    """
    if q.is_cuda:
        raise Unsupported("a mask that is a view of one band is for a CPU; CUDA kernels want whole rows in memory")
    bands = []
    for part in parts:
        if not isinstance(part, Toeplitz):
            raise Unsupported("a part of this bias is no function of the distance, and would need the whole matrix")
        if part.values is None:
            raise Unsupported("positions do not run in steps of one here, so distances make no band")
        if part.learned:
            raise Unsupported("this bias learns, and a fused kernel gives its mask no gradient")
        bands.append(part.values)
    return torch.stack(bands).sum(dim=0).to(torch.promote_types(q.dtype, torch.float32))


def _by_document(q: Tensor, k: Tensor, v: Tensor, mask: Mask, scale: float, band: Tensor | None) -> Tensor:
    """Each document of each sequence by itself: less work than one call, and no mask of T x S."""
    assert mask.documents is not None
    rows, cols, whole = q.shape[-2], k.shape[-2], []
    for b, documents in enumerate(mask.documents):
        sizes = _sizes(documents)
        firsts = list(accumulate(sizes, initial=0))
        counts = [max(last - max(first, cols - rows), 0) for first, last in pairwise(firsts)]
        tops = accumulate(counts, initial=0)
        pieces = [one[b : b + 1].split(n, dim=-2) for one, n in ((q, counts), (k, sizes), (v, sizes))]
        outs = []
        for (own_q, own_k, own_v), first, top in zip(zip(*pieces, strict=True), firsts, tops, strict=False):
            count, last = own_q.shape[-2], first + own_k.shape[-2]
            keys = None if mask.keys is None else mask.keys[b : b + 1, first:last]
            near = None if band is None else band[:, rows - top - count + first : rows - top + last - 1]
            if count:
                outs.append(fused(own_q, own_k, own_v, Mask(mask.causal, keys), scale, near))
        whole.append(torch.cat(outs, dim=-2))
    return torch.cat(whole)


def _sizes(documents: Tensor) -> list[int]:
    """Keys of each document of one sequence, in order."""
    found, sizes = documents.unique_consecutive(return_counts=True)
    if len(found) != len(found.unique()):
        raise Unsupported("a document lies in several pieces, which a fused kernel cannot take together")
    counts: list[int] = sizes.tolist()
    return counts
