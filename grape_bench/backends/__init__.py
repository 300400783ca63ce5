"""The contract of an attention backend: one function from queries, keys, values and a bias to outputs.

Shapes: B batch, H query heads, T queries, S keys, D head channels.
A file of this folder is a backend of its name; its last line is `PLUGIN = Class`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from grape_bench.bias import Bias
from grape_bench.registry import Registry

_NOTES: ContextVar[list[str] | None] = ContextVar("notes", default=None)


@dataclass(frozen=True)
class Mask:
    """Which keys a query may see.

    Args:
        causal: keys up to its own place. Queries are the last T of the S places, so the mask is aligned bottom right.
        keys: (B, S), False at padding; None where there is none.
        documents: (B, S), which document each key belongs to where several are packed into one sequence; a query sees
            its own alone.
    """

    causal: bool = False
    keys: Tensor | None = None
    documents: Tensor | None = None

    def visible(self, rows: int, cols: int, device: torch.device) -> Tensor | None:
        """(T, S), or (B, 1, T, S) with documents: False at keys ahead or of others; None where all are visible."""
        ahead = None
        if self.causal and rows > 1:
            ahead = torch.ones(rows, cols, dtype=torch.bool, device=device).tril(cols - rows)
        if self.documents is None:
            return ahead
        own = (self.documents[:, -rows:, None] == self.documents[:, None])[:, None]
        return own if ahead is None else own & ahead

    def joined(self, count: int) -> Tensor | None:
        """(B, 1, count, 1), whether the token before each of the newest belongs to it; None where all do."""
        found = None
        if self.keys is not None:
            found = F.pad(self.keys, (1, 0))[:, -count - 1 : -1]
        if self.documents is not None:
            padded = F.pad(self.documents, (1, 0), value=-1)
            same = padded[:, -count:] == padded[:, -count - 1 : -1]
            found = same if found is None else found & same
        return None if found is None else found[:, None, :, None]

    def clean(self, x: Tensor) -> Tensor:
        """Keys or values (B, kv_heads, S, D) with zeros at padding, so that not even an inf there leaves a trace."""
        return x if self.keys is None else x.masked_fill(~self.keys[:, None, :, None], 0.0)


class Backend:
    """Computes softmax(scale q k^T + bias, masked) v, in that order: score, scale, bias, mask, softmax.

    Class attributes are declared facts, read without running the file:
        version: raised when a number it gives would change.
        dense: a bias is held as a matrix, one number for each pair of tokens and head.
    """

    version = 1
    dense = False

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, bias: Bias | None, mask: Mask, *, scale: float | None = None
    ) -> Tensor:
        """Attention outputs (B, H, T, D); a row that may see no key gives zeros.

        Args:
            q: (B, H, T, D); k, v: (B, kv_heads, S, D), kv_heads a divisor of H.
            scale: of the scores, None for 1 / sqrt(D).

        Raises:
            Unsupported: this backend cannot do it, with the reason.
        """
        raise NotImplementedError


def load(name: str) -> Backend:
    """The backend of this name."""
    backend: Backend = Registry("backends")[name].load()()
    return backend


@contextmanager
def noting() -> Iterator[list[str]]:
    """Collect what backends say within of how they compute, such as the choice of `auto`, each thing once."""
    notes: list[str] = []
    token = _NOTES.set(notes)
    try:
        yield notes
    finally:
        _NOTES.reset(token)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def note(text: str) -> None:
    """Say how this call is computed where its cell alone does not tell; compiled code says it while it is traced."""
    notes = _NOTES.get()
    if notes is not None and text not in notes:
        notes.append(text)
