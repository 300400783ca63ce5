"""DAPE: a bias that is adapted to the scores it is added to."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from grape_bench.bias import Bias, Rowwise
from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._wrapper import Wrapper, probe
from grape_bench.errors import Unsupported


class Dape(Wrapper):
    """Let a small network see the scores A of all heads beside the wrapped bias B, and correct it.

        b = B + f([A; B]),   f: W2 lrelu(W1 . + c1) + c2 from 2H to `width` to H numbers, for each pair (i, j)

    It reads the scores and mixes the heads, so there is no lift and no fused kernel.

    Args:
        site: H is its heads.
        inner: has a bias, such as alibi, kerple or fire.
        width: hidden channels of f.

    Raises:
        Unsupported: the wrapped encoding has no bias.

    Source: Zheng et al. 2024, arXiv:2405.14722, section 3.
    """

    group = "none"
    representation = "a network on scores and a bias"
    breaks = ("heads",)
    around = "alibi"
    by_content = True

    def __init__(self, site: Site, inner: Encoding, *, width: int = 32):
        super().__init__()
        if width < 1:
            raise Unsupported(f"dape: its network needs a width of at least 1 channel, got {width}")
        if probe(inner, site, 0) is None:
            raise Unsupported("dape adapts a bias, and the wrapped encoding has none")
        self.wrap(inner)
        self.laws = tuple(law for law in inner.laws if law not in ("unipotent", "path"))
        self.first, self.first_shift = (nn.Parameter(torch.zeros(width, n)) for n in (2 * site.heads, 1))
        self.second, self.second_shift = (nn.Parameter(torch.zeros(site.heads, n)) for n in (width, 1))

    def reset(self, generator: torch.Generator) -> None:
        """Uniform, as linear layers start by default."""
        with torch.no_grad():
            for weight, shift in ((self.first, self.first_shift), (self.second, self.second_shift)):
                bound = weight.shape[1] ** -0.5
                weight.uniform_(-bound, bound, generator=generator)
                shift.uniform_(-bound, bound, generator=generator)

    def bias(self, q: Tensor, features: Tensor | None, at: At) -> Bias:
        wrapped = self.inner.bias(q, features, at)
        assert wrapped is not None, "it had a bias when it was built"
        given, wide = wrapped.leaves(), torch.promote_types(q.dtype, torch.float32)
        own = [one.to(wide) for one in (self.first, self.first_shift, self.second, self.second_shift)]

        def adapted(rows: slice, scores: Tensor | None, *leaves: Tensor) -> Tensor:
            assert scores is not None
            w1, c1, w2, c2 = leaves[len(given) :]
            base = wrapped.with_leaves(leaves[: len(given)]).tile(rows, scores=scores if wrapped.reads_scores else None)
            seen = base.masked_fill(base.isinf(), 0.0).expand(scores.shape)  # a wall stays one, and f cannot take it
            pairs = torch.cat((scores.to(wide), seen), dim=1).flatten(-2)  # (B, 2H, rows * S)
            return base + (w2 @ F.leaky_relu(w1 @ pairs + c1) + c2).reshape(scores.shape)

        return Rowwise(adapted, [*given, *own], reads_scores=True)


PLUGIN = Dape
