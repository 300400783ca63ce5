"""GB206: one token at a time behind a cache, against the full pass."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from grape_bench.finding import Finding, Place, Remark
from grape_bench.model_check.adapters import Output
from grape_bench.model_check.culprit import culprit
from grape_bench.model_check.rules import DECODE, MASK
from grape_bench.model_check.subject import CLOSE, LENGTH, NotChecked, Subject, axis, difference
from grape_bench.model_check.trace import Trace

STEPS = 3


def check(subject: Subject, found: dict[str, Finding]) -> Iterator[Finding | Remark]:
    """The last token's outputs, both ways."""
    subject.needs("past")
    if MASK.code in found:
        raise NotChecked(f"{MASK.code}: the full pass sees later tokens, which decoding cannot.")
    output, trace = _decoded(subject)
    moved = _moved(subject, output)
    if moved > CLOSE:
        yield DECODE.found(
            Place(subject.name(culprit(subject.trace, trace, _last, CLOSE))),
            f"The last of {STEPS} tokens decoded behind a cache of {LENGTH - STEPS} differs from the full pass by "
            f"{moved:.2g} of the outputs' scale{_cause(subject)}.",
        )


def _decoded(subject: Subject, *, explicit: bool = False) -> tuple[Output, Trace]:
    """The last step's output; with explicit positions, each step is told its own."""
    tokens = subject.tokens()
    output, trace = subject.run(tokens[:, : LENGTH - STEPS], past=None)
    for at in range(LENGTH - STEPS, LENGTH):
        if output.past is None:
            raise NotChecked("the model returned no cache.")
        told: dict[str, Any] = {"positions": subject.positions(at, 1)} if explicit else {}
        output, trace = subject.run(tokens[:, at : at + 1], past=output.past, **told)
    return output, trace


def _moved(subject: Subject, output: Output) -> float:
    return difference(subject.output.scores[:, -1:], output.scores[:, -1:])


def _cause(subject: Subject) -> str:
    if "positions" not in subject.adapter.offers:
        return ""
    repaired = _moved(subject, _decoded(subject, explicit=True)[0])
    if repaired <= CLOSE:
        return f", and by {repaired:.1g} when told its positions: without them they restart"
    return f", and by {repaired:.2g} when told its positions: these are not the cause"


def _last(one: Tensor, other: Tensor) -> tuple[Tensor, Tensor] | None:
    where = axis(one, LENGTH)
    if where is None or one.dim() != other.dim() or other.shape[where] != 1:
        return None
    last = one.narrow(where, LENGTH - 1, 1)
    return (last, other) if last.shape == other.shape else None
