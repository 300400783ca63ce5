"""Lifted: a bias of finite rank as extra channels of queries and keys, on the plain fused kernel."""

import torch
from torch import Tensor

from grape_bench.backends import Backend, Mask, note
from grape_bench.backends._fused import band_of, fused
from grape_bench.bias import Bias, LowRank
from grape_bench.errors import Unsupported


class Lifted(Backend):
    """Compute a bias of rank r with D + r channels: no matrix is built, and no kernel has to know of it.

        scale q_i . k_j + u_i . v_j + w_i  ->  scale [q_i, u_i / scale] . [k_j, v_j]

    The row constant w_i is dropped, since softmax does not see it. In half precision a number that grows is the sum of
    three, so that position 257 is not 256. What of a sum has no finite rank rides along as a band of distances.

    Where keys carry a gradient, as gates do, half precision is left: sums of rounded gradients along the sequence are
    wrong by 4 to 14 %.

    Raises:
        Unsupported: the bias reads the scores, or a part of it would need the whole matrix.

    Source: ours.
    """

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, bias: Bias | None, mask: Mask, *, scale: float | None = None
    ) -> Tensor:
        if bias is not None and bias.reads_scores:
            raise Unsupported("this bias reads the scores, which a fused kernel never shows")
        scale = q.shape[-1] ** -0.5 if scale is None else scale
        parts = bias.parts() if bias is not None else ()
        low = [part for part in parts if isinstance(part, LowRank)]
        if parts and not low:
            raise Unsupported("there is nothing to lift here: no part of this bias has a finite rank")
        rest = [part for part in parts if not isinstance(part, LowRank)]
        band = band_of(rest, q) if rest else None
        dtype = q.dtype
        if dtype.itemsize == 2 and any(part.v.requires_grad for part in low) and torch.is_grad_enabled():
            note("float32 inside")
            q, k, v = q.float(), k.float(), v.float()
        for part in low:
            u, w = _channels(part, q.dtype, scale)
            q, k = _beside(q, u), _beside(k, w)
        return fused(q, k, v, mask, scale, band).to(dtype)


def _channels(bias: LowRank, dtype: torch.dtype, scale: float) -> tuple[Tensor, Tensor]:
    """What q and k get, in their dtype."""
    u, v = bias.lift()
    u = u / scale
    if bias.bounded or dtype.itemsize > 2:
        return u.to(dtype), v.to(dtype)
    # Products beyond the third order are smaller than what float32 keeps.
    pairs = [(a, b) for i, a in enumerate(_three(u, dtype)) for b in _three(v, dtype)[: 3 - i]]
    us, vs = zip(*pairs, strict=True)
    return torch.cat(us, dim=-1), torch.cat(vs, dim=-1)


def _beside(x: Tensor, channels: Tensor) -> Tensor:
    """x (B, heads, n, D) with channels (1 or B, a divisor of the heads, n, r) behind its own."""
    whole = channels.repeat_interleave(x.shape[1] // channels.shape[1], dim=1)
    return torch.cat((x, whole.expand(*x.shape[:-1], -1)), dim=-1)


def _three(x: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """x as the sum of three numbers of half precision; its gradient goes through the first."""
    first = x.to(dtype)
    rest = (x - first).detach()
    second = rest.to(dtype)
    return first, second, (rest - second).to(dtype)


PLUGIN = Lifted
