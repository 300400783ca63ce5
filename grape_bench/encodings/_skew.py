"""Skew generators A and the rotations exp(t A) that they generate, by the planes in which A turns."""

import torch
from torch import Tensor

from grape_bench.encodings._rotary import spectrum, table, turn

_EQUAL = 1e-12  # frequencies nearer than this are one, and a gradient between their planes is left out


def skew(entries: Tensor, size: int) -> Tensor:
    """The skew matrix (..., n, n) whose part below the diagonal is given row by row, (..., n (n - 1) / 2)."""
    row, col = torch.tril_indices(size, size, offset=-1, device=entries.device)
    lower = entries.new_zeros(*entries.shape[:-1], size, size)
    lower[..., row, col] = entries
    return lower - lower.mT


def rotary_entries(size: int, base: float) -> Tensor:
    """The entries of RoPE's generator, which turns channels (2i, 2i + 1) by base^(-2i/n) a token.

    Raises:
        Unsupported: n is odd, or the base is not above zero.
    """
    speeds = torch.tensor(spectrum(size, base))
    first = 2 * torch.arange(size // 2)
    lower = torch.zeros(size, size)
    lower[first + 1, first] = speeds
    row, col = torch.tril_indices(size, size, offset=-1)
    return lower[row, col]


def planes(generator: Tensor) -> tuple[Tensor, Tensor]:
    """Orthonormal planes (a_m, b_m) in which a skew matrix turns, and how fast: A = sum_m w_m (b_m a_m^T - a_m b_m^T).

    An eigenvector (a + i b) / sqrt(2) of the Hermitian matrix i A spans a plane, and its eigenvalue is w. Both are
    found in float64, for w is multiplied by positions of thousands. The gradient is that of first-order perturbation
    theory. Torch's own refuses what depends on the phases of eigenvectors, and rounding in a long sum looks like that.

    Args:
        generator: A, (..., n, n).

    Returns:
        columns a_0, b_0, a_1, b_1, ... (..., n, 2m) and w >= 0 (..., m), m = n // 2, in the generator's dtype.
    """
    wide, half = generator.double(), slice(-(generator.shape[-1] // 2), None)
    still = wide.detach()
    value, vector = torch.linalg.eigh(torch.complex(torch.zeros_like(still), still))  # ascending, +w and -w
    # Real and imaginary parts apart: torch 2.13 compiles gradients of complex products of matrices wrongly.
    a, b, w = vector.real, vector.imag, value[..., half]
    moved_a, moved_b = ((wide - still) @ one[..., half] for one in (a, b))  # zero, with a gradient
    real, imaginary = b.mT @ moved_a - a.mT @ moved_b, a.mT @ moved_a + b.mT @ moved_b  # of V^H (i dA) V
    gap = w[..., None, :] - value[..., None]
    gap = gap.masked_fill(gap.abs() < _EQUAL, torch.inf)
    first = a[..., half] + a @ (real / gap) - b @ (imaginary / gap)
    second = b[..., half] + a @ (imaginary / gap) + b @ (real / gap)
    w = w + real[..., half, :].diagonal(dim1=-2, dim2=-1)
    return 2**0.5 * torch.stack((first, second), dim=-1).flatten(-2).to(generator.dtype), w.to(generator.dtype)


def turn_in(x: Tensor, basis: Tensor, frequency: Tensor, positions: Tensor) -> Tensor:
    """Turn x (B, H, T, D) within some planes and leave the rest of it: x + E (R(t w) - 1) E^T x.

    Args:
        basis: E, its orthonormal columns two a plane, (kv_heads, D, 2m), in at least float32.
        frequency: w, (kv_heads, m); positions: t, (T,) or (B, T).
    """
    columns = basis.repeat_interleave(x.shape[1] // basis.shape[0], dim=0)
    inside = x.to(basis.dtype) @ columns
    turned = turn(inside, table(positions, frequency), "interleaved")
    return (x + (turned - inside) @ columns.mT).to(x.dtype)
