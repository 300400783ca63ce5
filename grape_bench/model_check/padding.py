"""GB204: padding is filled with other tokens, and the outputs of real ones must stay."""

from collections.abc import Iterator

import torch

from grape_bench.finding import Finding, Place, Remark
from grape_bench.model_check.culprit import culprit, rows
from grape_bench.model_check.masks import is_causal
from grape_bench.model_check.rules import MASK, PADDING
from grape_bench.model_check.subject import EXACT, LENGTH, PADS, NotChecked, Subject, difference


def check(subject: Subject, found: dict[str, Finding]) -> Iterator[Finding | Remark]:
    """On the left; on the right too where later tokens are seen."""
    subject.honours("mask")
    sides = [("left", slice(0, PADS), (PADS, LENGTH))]
    if not is_causal(subject):
        sides.append(("right", slice(LENGTH - PADS, LENGTH), (0, LENGTH - PADS)))
    for side, padded, real in sides:
        finding = _leak(subject, side, padded, real)
        if finding and MASK.code in found and found[MASK.code].place == finding.place:
            raise NotChecked(f"{MASK.code} at the same module lets padding through as well.")
        if finding:
            yield finding
            return


def _leak(subject: Subject, side: str, padded: slice, real: tuple[int, int]) -> Finding | None:
    tokens = subject.tokens()
    mask = torch.ones_like(tokens, dtype=torch.bool)
    mask[:, padded] = False
    other = tokens.clone()
    other[:, padded] = subject.others(tokens[:, padded])
    first, one = subject.run(tokens, mask=mask)
    second, two = subject.run(other, mask=mask)
    if not first.scores[:, real[0] : real[1]].isfinite().all():
        raise NotChecked(f"behind padding the outputs of real tokens are no numbers, see {MASK.code}.")
    moved = difference(first.scores[:, real[0] : real[1]], second.scores[:, real[0] : real[1]])
    if moved <= EXACT:
        return None
    return PADDING.found(
        Place(subject.name(culprit(one, two, rows(LENGTH, *real), EXACT))),
        f"Other tokens in {PADS} padded places on the {side} moved the outputs of real tokens by {moved:.2g} of their "
        "scale.",
    )
