"""FIRE: a small network on how far back a key lies, as a share of what there is."""

from typing import Literal

import torch
from torch import Tensor, nn

from grape_bench.bias import Bias, Rowwise
from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._heads import rows_of
from grape_bench.errors import Unsupported

_TINY = 1e-6


class Fire(Encoding):
    """Feed a network the distance in units of the query's position, so that no input is ever out of range.

        b(i, j) = f_h(psi(|i - j|) / psi(max(i, L))),   psi(x) = log(1 + c x),   f = W2 relu(W1 . + c1) + c2

    Up to a learned threshold L the unit is psi(L), so that short inputs do not stretch. The query's own position sets
    the unit: this is no function of the distance, and an origin is needed. In an encoder |i - j| stands for both sides.

    Args:
        site: half its train_length is the default threshold.
        threshold: the value that L starts at, tokens.
        width: hidden channels of f.
        heads: which heads share an output of f.

    Raises:
        Unsupported: a threshold or a width below 1.

    Source: Li et al. 2024, arXiv:2310.04418, section 3; c starts at 0.1 as there.
    """

    group = "none"
    representation = "network on relative distance"
    variants = ("heads='shared'",)

    rows: Tensor

    def __init__(
        self,
        site: Site,
        *,
        threshold: float | None = None,
        width: int = 32,
        heads: Literal["own", "shared", "half"] = "own",
    ):
        super().__init__()
        self.threshold = site.train_length / 2 if threshold is None else threshold
        if self.threshold < 1 or width < 1:
            raise Unsupported(f"fire: threshold and width must be at least 1, got {self.threshold} and {width}")
        self.register_buffer("rows", rows_of(site.heads, heads), persistent=False)
        self.c, self.gain = nn.Parameter(torch.tensor(0.1)), nn.Parameter(torch.tensor(1.0))
        self.first, self.first_shift = (nn.Parameter(torch.zeros(width)) for _ in range(2))
        outputs = int(self.rows.max()) + 1
        self.second, self.second_shift = nn.Parameter(torch.zeros(outputs, width)), nn.Parameter(torch.zeros(outputs))

    def reset(self, generator: torch.Generator) -> None:
        """Uniform, as linear layers start by default."""
        bound = len(self.first) ** -0.5
        with torch.no_grad():
            for one in (self.first, self.first_shift):
                one.uniform_(-1.0, 1.0, generator=generator)
            for one in (self.second, self.second_shift):
                one.uniform_(-bound, bound, generator=generator)

    def bias(self, q: Tensor, features: Tensor | None, at: At) -> Bias:
        wide = torch.promote_types(q.dtype, torch.float32)
        i, j = (p.reshape(-1, p.shape[-1]).to(wide) for p in (at.q_pos, at.k_pos))  # (1 or B, T), (1 or B, S)
        c, limit = self.c.to(wide).abs(), (self.gain.to(wide) * self.threshold).abs()
        first = [one.to(wide) for one in (self.first, self.first_shift)]
        second = [one[self.rows].to(wide) for one in (self.second, self.second_shift)]

        def values(rows: slice, scores: Tensor | None, c: Tensor, limit: Tensor, *network: Tensor) -> Tensor:
            own = i[:, rows, None]
            far = ((own - j[:, None]).abs() * c).log1p()
            unit = (torch.maximum(own, limit) * c).log1p() + _TINY
            w1, c1, w2, c2 = network
            made = ((far / unit)[..., None] * w1 + c1).relu() @ w2.T + c2  # (1 or B, rows, S, H)
            return made.permute(0, 3, 1, 2)

        return Rowwise(values, [c, limit, *first, *second])


PLUGIN = Fire
