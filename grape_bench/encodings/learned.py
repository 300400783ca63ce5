"""Learned: one free vector for each position, added to the token vectors."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from grape_bench.encodings import Encoding, Site
from grape_bench.errors import Unsupported


class Learned(Encoding):
    """Add row t of a learned table to the token at position t.

        x'_t = x_t + E[t]

    No group acts on the table. Rows beyond the training length are never trained, and stay at their random start.

    Args:
        site: the table has `longest` rows.
        std: of the random start; as wide as the model's token vectors, as in BERT, where both are 0.02.

    Raises:
        Unsupported: std is below 0.
        IndexError: a position below 0, or at or beyond `longest`.

    Source: Devlin et al. 2018, arXiv:1810.04805, section 3.
    """

    representation = "look-up"
    shared = True
    out_of_reach = "untrained"

    def __init__(self, site: Site, *, std: float = 0.3):
        super().__init__()
        if std < 0:
            raise Unsupported(f"learned: std must be at least 0, got {std}")
        self.std = std
        self.table = nn.Parameter(torch.zeros(site.longest, site.width))

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return x + F.embedding(positions, self.table).to(x.dtype)

    def reset(self, generator: torch.Generator) -> None:
        with torch.no_grad():
            self.table.normal_(0.0, self.std, generator=generator)


PLUGIN = Learned
