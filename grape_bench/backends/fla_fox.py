"""flash-linear-attention's kernel of forgetting attention, for those who have the package and a GPU."""

from torch import Tensor
from torch.nn import functional as F

from grape_bench.backends import Backend, Mask
from grape_bench.backends._outside import module, same_for_all_queries
from grape_bench.bias import Bias
from grape_bench.errors import Unsupported


class FlaFox(Backend):
    """Hand log gates g_t to `parallel_forgetting_attn`, which adds their sum from j + 1 to i.

        b(i, j) = c_i - c_j,   g_t = c_t - c_{t-1}

    So it takes any bias that is one number -c_j for each key, ALiBi as well. The first gate is part of no sum.
    Written from its documented interface, and never run here: there was no GPU with the package at hand. Only what it
    is given is tested, with a stand-in.

    Raises:
        Unsupported: no such bias, other masks than the causal one, queries behind a cache, no GPU, or no package.

    Source: the package flash-linear-attention, 0.2 and later.
    """

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, bias: Bias | None, mask: Mask, *, scale: float | None = None
    ) -> Tensor:
        kernel = module("fla.ops.forgetting_attn.parallel", "flash-linear-attention", q).parallel_forgetting_attn
        if q.shape[-2] != k.shape[-2]:
            raise Unsupported("this kernel has a query for every key, so it does not decode from a cache")
        low = same_for_all_queries(bias, mask)
        keys = low.v.repeat_interleave(q.shape[1] // low.v.shape[1], dim=1)
        summed = -(low.u[:, :, :1] * keys).sum(dim=-1)  # c, (b, H, S)
        gates = F.pad(summed.diff(dim=-1), (1, 0)).expand(len(q), -1, -1)
        out: Tensor = kernel(*(one.transpose(1, 2) for one in (q, k, v, gates)), scale=scale)  # it wants (B, T, H, D)
        return out.transpose(1, 2)


PLUGIN = FlaFox
