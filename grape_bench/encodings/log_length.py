"""Log length: scores grow with the logarithm of how many keys share the softmax."""

import math

import torch
from torch import Tensor

from grape_bench.encodings import At, Encoding, Site
from grape_bench.errors import Unsupported


class LogLength(Encoding):
    """Lengthen queries by the logarithm of the number n of keys, against that of the training length L.

        q'_t = q_t log n / log L

    The more keys share a softmax, the flatter it is; this keeps it as sharp. Tokens are counted from position 0, so
    that padding on the left counts for nothing: an encoder's n goes up to the last token, a decoder's up to the query,
    so that it decodes as it reads. It tells no order, and is made to be added to another encoding.

    Args:
        site: its train_length is L, and its direction decides n.
        beyond: leave texts up to the training length as they are; otherwise shorter ones get flatter.

    Raises:
        Unsupported: a training length below 2.

    Source: Su 2021, a note on scaling attention by log n; Chiang and Cholak 2022, arXiv:2202.12172, section 5.3.
    """

    group = "none; one scale for each length"
    representation = "scalars"
    variants = ("beyond=True",)
    tells = False

    def __init__(self, site: Site, *, beyond: bool = False):
        super().__init__()
        if site.train_length < 2:
            raise Unsupported(f"log_length: the training length must be at least 2 tokens, got {site.train_length}")
        self.causal, self.unit, self.beyond = site.causal, math.log(site.train_length), beyond
        self.laws = (("identity",) if beyond else ()) if site.causal else ("reflection",)

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        seen = at.q_pos + 1 if self.causal else at.k_pos.amax(-1, keepdim=True) + 1
        # At least float32: bfloat16 counts to 256.
        factor = seen.clamp_min(1).to(torch.promote_types(q.dtype, torch.float32)).log() / self.unit
        factor = factor.clamp_min(1.0) if self.beyond else factor
        factor = factor[..., None] if factor.dim() == 1 else factor[:, None, :, None]
        return (q * factor).to(q.dtype), k


PLUGIN = LogLength
