"""flash-attn's kernel with its own ALiBi, for those who have the package and a GPU."""

import torch
from torch import Tensor

from grape_bench.backends import Backend, Mask
from grape_bench.backends._outside import module, same_for_all_queries
from grape_bench.bias import Bias
from grape_bench.errors import Unsupported


class FlashAlibi(Backend):
    """Hand slopes m_h to `flash_attn_func`, which adds -m_h |i + S - T - j| as it goes along.

    Written from its documented interface, and never run here: there was no GPU with the package at hand. Only what it
    is given is tested, with a stand-in.

    Raises:
        Unsupported: no causal ALiBi, other masks than the causal one, no half precision, no GPU, or no package.

    Source: the package flash-attn, 2.4 and later.
    """

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, bias: Bias | None, mask: Mask, *, scale: float | None = None
    ) -> Tensor:
        kernel = module("flash_attn", "flash-attn", q).flash_attn_func
        if q.dtype not in (torch.float16, torch.bfloat16):
            raise Unsupported(f"flash-attn computes in half precision alone, not in {q.dtype}")
        low = same_for_all_queries(bias, mask)
        if low.v.shape[:2] != (1, 1) or low.v.shape[3] != 1 or not bool((low.v.diff(dim=-2) == 1).all()):
            raise Unsupported("flash-attn knows one bias, and this is no slope times the position of the key")
        if low.learned:
            raise Unsupported("flash-attn has no gradient for slopes")
        turned = (one.transpose(1, 2) for one in (q, k, v))  # it wants (B, T, H, D)
        out: Tensor = kernel(*turned, softmax_scale=scale, causal=True, alibi_slopes=low.u[0, :, 0, 0].float())
        return out.transpose(1, 2)


PLUGIN = FlashAlibi
