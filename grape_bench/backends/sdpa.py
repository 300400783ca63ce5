"""SDPA: torch's fused attention with the bias as a dense float mask, the way most users run a bias today."""

import torch
from torch import Tensor
from torch.nn import functional as F

from grape_bench.backends import Backend, Mask, note
from grape_bench.backends._fused import hide
from grape_bench.bias import Bias
from grape_bench.errors import Unsupported


class Sdpa(Backend):
    """Hand q, k, v to `scaled_dot_product_attention`, the bias as one (1, H, T, S) mask for the whole batch.

    A mask that needs a gradient takes torch's unfused path, and padding beside a bias travels as one more channel of
    the keys, since a mask with both would have to be expanded over the batch.

    Raises:
        Unsupported: the bias reads the scores, which a fused kernel never shows.
    """

    dense = True

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, bias: Bias | None, mask: Mask, *, scale: float | None = None
    ) -> Tensor:
        scale = q.shape[-1] ** -0.5 if scale is None else scale
        grouped = k.shape[1] != q.shape[1]
        k, v = mask.clean(k), mask.clean(v)
        rows, cols, width = q.shape[-2], k.shape[-2], v.shape[-1]
        masked = mask.keys is not None or mask.documents is not None
        if bias is None and not masked and mask.causal and rows == cols:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale, enable_gqa=grouped)
        matrix = mask.visible(rows, cols, q.device)
        if bias is not None:
            matrix = self._dense(bias, matrix, q)
            if mask.keys is not None:
                q, k = hide(q, k, mask.keys)
                v = F.pad(v, (0, 1))
        elif mask.keys is not None:
            seen = mask.keys[:, None, None]
            matrix = seen if matrix is None else seen & matrix
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=matrix, scale=scale, enable_gqa=grouped)
        return out[..., :width]

    def _dense(self, bias: Bias, visible: Tensor | None, q: Tensor) -> Tensor:
        if bias.reads_scores:
            raise Unsupported("sdpa never shows its scores, and this encoding's bias reads them")
        if bias.learned:
            note("unfused, since the mask needs a gradient")
        matrix = bias.tile()
        if visible is not None:
            matrix = matrix.masked_fill(~visible, float("-inf"))
        # CUDA kernels want the queries' dtype; the CPU kernel takes float32 beside half precision and is more exact.
        return matrix.to(q.dtype) if q.is_cuda or q.dtype == torch.float64 else matrix


PLUGIN = Sdpa
