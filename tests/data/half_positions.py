"""An encoding that counts in the format of its input, as no encoding should."""

from torch import Tensor

from grape_bench.encodings import At, Encoding, Site


class HalfPositions(Encoding):
    """Stretch queries and keys by their positions, rounded to the format of the queries.

    Source: ours; a mistake.
    """

    breaks = ("dtype",)

    def __init__(self, site: Site):
        super().__init__()

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        return q * at.q_pos.to(q.dtype)[..., None], k * at.k_pos.to(k.dtype)[..., None]
