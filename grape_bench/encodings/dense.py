"""Dense: rotations by the exponential of a learned skew matrix."""

from typing import Literal

import torch
from torch import Tensor, nn

from grape_bench.encodings import At, Encoding, Site
from grape_bench.encodings._rotary import spectrum
from grape_bench.encodings._skew import planes, rotary_entries, skew, turn_in
from grape_bench.errors import Unsupported


class Dense(Encoding):
    """Turn queries and keys by a whole matrix, the exponential of position times one learned generator.

        x'_t = exp(t A) x_t,   A^T = -A

    Three papers differ in what A is made of. `algebraic`: anything, W - W^T, of which the part of W below the diagonal
    is all that counts. `lie`: one skew block for every b channels. `com`: one skew block P - P^T for all of them, times
    a speed for each. On a single axis of positions each is a one-parameter group. All start as RoPE.

    Args:
        site: each of its key heads has a generator; head_dim must be even.
        generator: what A is made of.
        block: b, the channels of a block of `lie` and `com`: an even divisor of head_dim.
        base: of the spectrum at the start, no unit.

    Raises:
        Unsupported: head_dim is odd, or such blocks do not fill it.

    Source: Kogkalidis et al. 2023, arXiv:2312.16045; Ostmeier et al. 2024, arXiv:2406.10322, in one dimension; Yu et
        al. 2025, arXiv:2506.03737, the form LD. The start is ours.
    """

    group = "translations"
    representation = "SO(D) of one learned generator"
    laws = ("relative", "identity", "inverse", "homomorphism", "isometric")
    variants = ("generator='lie'", "generator='com'")

    def __init__(
        self,
        site: Site,
        *,
        generator: Literal["algebraic", "lie", "com"] = "algebraic",
        block: int = 4,
        base: float = 10_000.0,
    ):
        super().__init__()
        D = site.head_dim
        self.block = D if generator == "algebraic" else block
        if self.block < 2 or self.block % 2 or D % self.block:
            raise Unsupported(f"dense: blocks of an even size must fill a head of {D} channels, got {self.block}")
        # A block's first speed, and RoPE's spectrum within a block relative to it.
        speed = torch.tensor(spectrum(2 * D // self.block, base))[:, None]
        inside = rotary_entries(self.block, base ** (self.block / D))
        common = generator == "com"
        self.speed = nn.Parameter(speed.repeat(site.kv_heads, 1, 1)) if common else None
        self.entries = nn.Parameter((inside if common else speed * inside).repeat(site.kv_heads, 1, 1))

    def rotate(self, q: Tensor, k: Tensor, features: Tensor | None, at: At) -> tuple[Tensor, Tensor]:
        wide = torch.promote_types(q.dtype, torch.float32)
        entries = self.entries.to(wide) if self.speed is None else self.speed.to(wide) * self.entries.to(wide)
        basis, frequency = planes(skew(entries, self.block))  # (kv_heads, n, b, b) and (kv_heads, n, b/2) of n blocks
        place = torch.eye(basis.shape[1], dtype=wide, device=q.device)
        whole = torch.einsum("hnbp,nm->hnbmp", basis, place).flatten(3).flatten(1, 2)  # blocks along the diagonal
        frequency = frequency.flatten(1)
        return turn_in(q, whole, frequency, at.q_pos), turn_in(k, whole, frequency, at.k_pos)


PLUGIN = Dense
