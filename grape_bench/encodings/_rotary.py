"""Turning pairs of channels: what every rotary encoding does, whatever its angles."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal

import torch
from torch import Tensor

from grape_bench.encodings import At
from grape_bench.encodings._numbers import Numbers
from grape_bench.errors import Unsupported

Layout = Literal["interleaved", "half"]


def spectrum(size: int, base: float) -> tuple[float, ...]:
    """Frequencies base^(-2i/r) of the planes i = 0 .. r/2 - 1 of r channels, in radians a token.

    Raises:
        Unsupported: r is odd, or the base is not above zero.
    """
    if size % 2:
        raise Unsupported(f"a rotation turns pairs of channels: their number must be even, got {size}")
    if base <= 0:
        raise Unsupported(f"the base of a spectrum must be above 0, got {base}")
    return tuple(base ** (-2 * plane / size) for plane in range(size // 2))


@dataclass(frozen=True)
class Rotation:
    """Planes that turn at constant speeds: of q and k alike, by scale * e^(i p w).

    Args:
        frequency: w, radians a token, of each plane; or a row of these for each key head.
        scale: both lengthen by it.
    """

    frequency: tuple[float, ...] | tuple[tuple[float, ...], ...]
    layout: Layout
    scale: float = 1.0

    def __call__(self, q: Tensor, k: Tensor, at: At) -> tuple[Tensor, Tensor]:
        """Turn queries (B, H, T, D) and keys (B, kv_heads, S, D)."""
        turned = turn(k, self._table(k, at, "k"), self.layout)
        return turn(q, self._table(q, at, "k" if at.q_pos is at.k_pos else "q"), self.layout), turned

    def _table(self, x: Tensor, at: At, side: Literal["q", "k"]) -> Tensor:
        wide = torch.promote_types(x.dtype, torch.float32)

        def make() -> Tensor:
            # Numbers, and no buffer: a module that is cast to bfloat16 would round it.
            made = table(at.q_pos if side == "q" else at.k_pos, self._numbers.on(x.device, wide))
            return made if self.scale == 1 else self.scale * made

        return at.once((self, side, wide), make)  # type: ignore[no-any-return]

    @cached_property
    def _numbers(self) -> Numbers:
        return Numbers(partial(torch.tensor, self.frequency))


def table(positions: Tensor, frequency: Tensor) -> Tensor:
    """e^(i p w), complex, of the shape of `phase`; bfloat16 frequencies could not tell position 256 from 257."""
    angle = phase(positions, frequency)
    return torch.complex(angle.cos(), angle.sin())


def phase(positions: Tensor, frequency: Tensor) -> Tensor:
    """p w: (T, r/2), or (B, 1, T, r/2) where positions differ over the batch.

    Args:
        positions: (T,) or (B, T).
        frequency: (r/2,) in at least float32; or (kv_heads, r/2), for (kv_heads, T, r/2) or (B, kv_heads, T, r/2).
    """
    place = positions.to(frequency.dtype)[..., None]
    if frequency.dim() == 2 or place.dim() == 3:
        place, frequency = place.unsqueeze(-3), frequency.unsqueeze(-2)
    return place * frequency


def turn(x: Tensor, cis: Tensor, layout: Layout) -> Tensor:
    """Each pair of the first r channels of x (B, H, T, D) as a complex number, times that of the table.

    Args:
        cis: complex, (..., T, r/2), its leading sizes those of x or 1; a query head takes the row of its key head.
        layout: plane i holds channels (2i, 2i + 1) when `interleaved`, (i, i + r/2) when `half`.
    """
    planes = cis.shape[-1]
    if 2 * planes < x.shape[-1]:
        return torch.cat((turn(x[..., : 2 * planes], cis, layout), x[..., 2 * planes :]), dim=-1)
    if cis.dim() > 2 and cis.shape[-3] not in (1, x.shape[1]):
        cis = cis.repeat_interleave(x.shape[1] // cis.shape[-3], dim=-3)
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    if layout == "interleaved":
        pairs = torch.view_as_complex(wide.reshape(*x.shape[:-1], planes, 2))
        return torch.view_as_real(pairs * cis).flatten(-2).to(x.dtype)
    turned: Tensor = _turn_halves(wide, cis) if cis.requires_grad else _TurnHalves.apply(wide, cis)  # type: ignore[no-untyped-call]
    return turned.to(x.dtype)


def _turn_halves(x: Tensor, cis: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    turned = torch.view_as_real(torch.complex(first, second).mul_(cis))
    if x.device.type != "cpu":
        return turned.transpose(-1, -2).flatten(-2)
    # The same order, and three times as fast as a transposed copy: channels in front, though last in memory.
    shuffled: Tensor = torch.channel_shuffle(turned.flatten(-2).movedim(-1, 1), first.shape[-1])
    return shuffled.movedim(1, -1).contiguous()


class _TurnHalves(torch.autograd.Function):
    """The same by a constant table: gradients turn by minus the angle, in half the time that autograd takes."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cis: Tensor) -> Tensor:
        ctx.save_for_backward(cis)
        return _turn_halves(x, cis)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (cis,) = ctx.saved_tensors
        return _TurnHalves.apply(grad, cis.conj()), None  # type: ignore[no-untyped-call]
