"""Auto: another backend for each call, by one table."""

from typing import NamedTuple

import torch
from torch import Tensor

from grape_bench.backends import Backend, Mask, load, note
from grape_bench.bias import Bias, LowRank, Toeplitz

_WIDE = 64  # channels, beyond which reading them for each score is dear


class _Row(NamedTuple):
    """One line of the table: `backend` takes a call whose bias is made of `kinds` alone, where all of `when` holds.

    Args:
        kinds: of finite `rank`, or of a `wide` one; fixed functions of `distances` in steps of one; `learned` ones; any
            `other`; one that reads `scores`. The empty set is no bias.
        when: on `cpu` or `cuda`; `one` query without a gradient; packed `documents`.
    """

    kinds: set[str]
    when: set[str]
    backend: str


# The first row that fits. On CUDA one extra channel at a head_dim of 64 or 128 falls into the kernel's next width.
_TABLE = (
    _Row(set(), {"documents"}, "lifted"),
    _Row(set(), set(), "sdpa"),
    _Row({"rank", "wide", "distances", "learned", "other"}, {"one"}, "sdpa"),  # one row a head is no matrix
    _Row({"distances"}, {"cpu"}, "reversed"),
    _Row({"rank", "wide", "distances"}, {"cpu"}, "lifted"),
    _Row({"rank", "distances", "learned"}, {"cuda"}, "flex"),
    _Row({"rank", "wide", "distances", "learned", "other", "scores"}, set(), "chunked"),
)


class Auto(Backend):
    """Leave each call to the backend that is expected to be the fastest without a matrix; the record names it.

    The choice rests on what the bias is made of, the device, the pass and gradients. A version of this backend is one
    of the table and of all that it names. What the chosen backend cannot do is not tried on another.

    Raises:
        Unsupported: the chosen backend cannot do it.
    """

    def __init__(self) -> None:
        self._backends = {name: load(name) for name in {row.backend for row in _TABLE}}

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, bias: Bias | None, mask: Mask, *, scale: float | None = None
    ) -> Tensor:
        name = choose(bias, mask, q)
        note(name)
        return self._backends[name].attend(q, k, v, bias, mask, scale=scale)


def choose(bias: Bias | None, mask: Mask, q: Tensor) -> str:
    """The backend of the first row that fits."""
    kinds = {_kind(part) for part in bias.parts()} if bias is not None else set()
    if bias is not None and bias.reads_scores:
        kinds.add("scores")
    found = {q.device.type} | ({"documents"} if mask.documents is not None else set())
    if q.shape[-2] == 1 and not torch.is_grad_enabled():
        found.add("one")
    return next(row.backend for row in _TABLE if kinds <= row.kinds and row.when <= found)


def _kind(part: Bias) -> str:
    if isinstance(part, LowRank):
        return "rank" if part.u.shape[-1] <= _WIDE else "wide"
    if isinstance(part, Toeplitz) and part.values is not None:
        return "learned" if part.learned else "distances"
    return "other"


PLUGIN = Auto
