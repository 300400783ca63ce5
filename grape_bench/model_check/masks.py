"""GB203: later tokens are changed, and earlier outputs must stay; in the model's own type they must be numbers."""

from collections.abc import Iterator

import torch
from torch import Tensor

from grape_bench.finding import Finding, Place, Remark
from grape_bench.model_check.culprit import culprit, rows
from grape_bench.model_check.rules import MASK
from grape_bench.model_check.subject import EXACT, LENGTH, PADS, NotChecked, Subject, difference
from grape_bench.model_check.trace import Softmax, Trace

FROM = LENGTH // 2  # tokens from here on are changed


def check(subject: Subject, found: dict[str, Finding]) -> Iterator[Finding | Remark]:
    """Nothing of what comes later is seen."""
    tokens = subject.tokens()
    changed = torch.cat((tokens[:, :FROM], subject.others(tokens[:, FROM:])), dim=1)
    output, trace = subject.run(changed)
    moved = difference(subject.output.scores[:, :FROM], output.scores[:, :FROM])
    if moved > EXACT and not is_causal(subject):
        raise NotChecked("the model sees later tokens and masks none, or says so: it is bidirectional by design.")
    if moved > EXACT:
        name = culprit(subject.trace, trace, rows(LENGTH, 0, FROM), EXACT)
        yield MASK.found(
            Place(subject.name(name)),
            f"Other tokens from position {FROM} on moved earlier outputs by {moved:.2g} of their scale"
            f"{_how(subject.trace, name)}.",
        )


def finite(subject: Subject, found: dict[str, Finding]) -> Iterator[Finding | Remark]:
    """Behind padding, outputs of real tokens are numbers in the type that the model came in."""
    if "mask" not in subject.adapter.offers:
        return
    mask = torch.ones_like(subject.tokens(), dtype=torch.bool)
    mask[:, :PADS] = False
    output, trace = subject.run(subject.tokens(), mask=mask)
    lost = int((~output.scores[:, PADS:].isfinite()).sum())
    if lost and subject.output.scores.isfinite().all():
        wrong = [one for one in trace.visits if all(map(_numbers, one.inputs)) and not all(map(_numbers, one.outputs))]
        yield MASK.found(
            Place(subject.name(wrong[0].name if wrong else "")),
            f"Behind {PADS} padded places {lost} outputs of real tokens are no numbers in "
            f"{str(subject.dtype).removeprefix('torch.')}: a row with every key masked gives none, and spreads.",
        )


def is_causal(subject: Subject) -> bool:
    """Whether the model says so, or an attention of it masks most later keys."""
    if subject.adapter.causal is not None:
        return subject.adapter.causal
    return any(_masks(one) for one in subject.trace.softmaxes)


def _masks(softmax: Softmax) -> bool:
    scores = softmax.scores.double()
    if scores.shape[-2:] != (LENGTH, LENGTH):
        return False
    later = torch.ones(LENGTH, LENGTH, dtype=torch.bool, device=scores.device).triu(LENGTH // 4)
    own = scores.diagonal(dim1=-2, dim2=-1)[..., None]
    return bool(((scores < own - 5) | ~later).double().mean() > 0.99)


def _numbers(tensor: Tensor) -> bool:
    """No NaN; an infinite number is a mask's."""
    return not tensor.isnan().any()


def _how(trace: Trace, name: str) -> str:
    """What the weights of the attention in or at that module say of the cause."""
    inside = [one for one in trace.softmaxes if one.name == name or one.name.startswith(f"{name}.")]
    square = [one for one in inside if one.scores.shape[-2:] == (LENGTH, LENGTH)]
    if not square:
        return ""
    later = torch.ones(LENGTH, LENGTH, dtype=torch.bool, device=square[0].scores.device).triu(1)
    weight = square[0].weights[..., later].max().item()
    if weight == 0.0:
        return ", though its softmax gives later tokens no weight: something is added after it"
    return f", and its softmax gives a later token a weight of {weight:.2g}"
