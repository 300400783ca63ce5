"""GB202: all positions move together, and the outputs must not."""

from collections.abc import Iterator

import torch
from torch import Tensor

from grape_bench.finding import Finding, Place, Remark
from grape_bench.model_check.adapters import Output
from grape_bench.model_check.culprit import Pair, culprit
from grape_bench.model_check.rules import DOUBLED, MASK, PADDING, SHIFT, TABLE
from grape_bench.model_check.signals import signals
from grape_bench.model_check.subject import (
    CLOSE,
    LENGTH,
    OFFSET,
    PADS,
    NotChecked,
    Subject,
    difference,
    is_state,
    width,
)
from grape_bench.model_check.trace import Trace

Run = tuple[Output, Trace]


def check(subject: Subject, found: dict[str, Finding]) -> Iterator[Finding | Remark]:
    """By the positions that are handed in, and by a window behind padding."""
    for one in (DOUBLED, TABLE):
        if one.code in found:
            raise NotChecked(f"{one.code} moves the outputs by itself.")
    if signals(subject).embedded > CLOSE:
        raise NotChecked("positions are absolute by design, so outputs depend on them.")
    made, reasons = False, []
    for way in (_by_positions, _by_window):
        try:
            finding = way(subject, found)
        except NotChecked as reason:
            reasons.append(str(reason))
            continue
        made = True
        if finding:
            yield finding
            return
    if not made:
        raise NotChecked(" ".join(reasons))


def _by_positions(subject: Subject, found: dict[str, Finding]) -> Finding | None:
    subject.honours("positions")
    other = subject.run(subject.tokens(), positions=subject.positions(OFFSET))
    return _verdict(subject, f"positions {OFFSET}, {OFFSET + 1}, .. in place of 0, 1, ..", other)


def _by_window(subject: Subject, found: dict[str, Finding]) -> Finding | None:
    subject.honours("mask")
    for one in (MASK, PADDING):
        if one.code in found:
            raise NotChecked(f"{one.code}: padding or later tokens change the outputs by themselves.")
    real = subject.tokens()
    mask = torch.ones(subject.batch, PADS + LENGTH, dtype=torch.bool, device=subject.device)
    mask[:, :PADS] = False
    output, trace = subject.run(torch.cat((real[:, :PADS], real), dim=1), mask=mask)
    other = (Output(output.scores[:, PADS:]), trace)
    return _verdict(subject, f"a window {PADS} places further right, behind padding,", other)


def _verdict(subject: Subject, what: str, other: Run) -> Finding | None:
    moved = difference(subject.output.scores, other[0].scores)
    if moved <= CLOSE:
        return None
    name = culprit(subject.trace, other[1], _states(width(subject.trace)), CLOSE)
    return SHIFT.found(
        Place(subject.name(name)),
        f"{what[0].upper()}{what[1:]} moved the outputs by {moved:.2g} of their scale, and this is the first module "
        "that differs.",
    )


def _states(channels: int) -> Pair:
    """Token vectors alone: what is made of positions differs rightly."""

    def pair(one: Tensor, other: Tensor) -> tuple[Tensor, Tensor] | None:
        if not is_state(one, channels) or other.dim() != 3:
            return None
        return one, other[:, -LENGTH:]

    return pair
