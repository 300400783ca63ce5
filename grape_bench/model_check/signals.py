"""Where position enters a model: on the embeddings, in attention, or in both."""

from typing import NamedTuple

import torch
from torch import Tensor

from grape_bench.model_check.subject import (
    CLOSE,
    LENGTH,
    NotChecked,
    Subject,
    axis,
    carriers,
    difference,
    is_state,
    width,
)
from grape_bench.model_check.trace import Edit, Trace

_MASKED = 1e3  # a score so far below the largest of its row is a masked one


class Signals(NamedTuple):
    """Where position enters.

    Args:
        embedded: how far what enters the first attention differs between positions, one token repeated.
        attended: how far the scores of an attention differ between keys that are all the same, by its carrier.
    """

    embedded: float
    attended: dict[str, float]

    @property
    def inside(self) -> dict[str, float]:
        """The attentions with a signal of their own."""
        return {name: size for name, size in self.attended.items() if size > CLOSE}


def signals(subject: Subject) -> Signals:
    """Measure where position enters.

    Raises:
        NotChecked: no attention was seen, or tokens are mixed before the first one, as a recurrence does.
    """
    repeated = repetition(subject)
    _, trace = subject.run(repeated)
    found = carriers(trace)
    if not found:
        raise NotChecked("no softmax over the positions of the tokens was seen: attention is hidden from hooks.")
    _, level = subject.run(repeated, before=dict.fromkeys(found.values(), _level(width(trace))))
    sizes: dict[str, float] = {}
    for softmax in level.softmaxes:
        if softmax.name in found:
            sizes[found[softmax.name]] = max(sizes.get(found[softmax.name], 0.0), _slope(softmax.scores))
    embedded = spread(entering(trace, next(iter(found.values()))))
    if embedded > CLOSE and _mixes(subject):
        raise NotChecked("what enters the first attention depends on earlier tokens, so no position can be told in it.")
    return Signals(embedded, sizes)


def repetition(subject: Subject) -> Tensor:
    """One token, again and again (B, T)."""
    return subject.tokens()[:, :1].expand(-1, LENGTH)


def _level(channels: int) -> Edit:
    """The same token vector at every position."""
    return lambda tensor: flat(tensor) if is_state(tensor, channels) else tensor


def entering(trace: Trace, carrier: str) -> Tensor:
    """What a carrier of attention is handed (B, T, C)."""
    visit = next(one for one in trace.visits if one.name == carrier)
    return next(one for one in visit.inputs if is_state(one, width(trace)))


def spread(states: Tensor) -> float:
    """How far vectors of the later half differ from each other: a short convolution's edge is at the beginning."""
    late = states[:, LENGTH // 2 :]
    return ((late - late[:, :1]).abs().max() / states.abs().max().clamp_min(1e-30)).item()


def _slope(scores: Tensor) -> float:
    """How far the unmasked scores of the last query differ between keys."""
    last = scores[..., -1, :].double()
    top = last.amax(-1, keepdim=True)
    return (top - last.where(last > top - _MASKED, top)).max().item()


def _mixes(subject: Subject) -> bool:
    """Whether other tokens at the beginning change what enters the first attention at the end."""
    tokens = subject.tokens()
    half = LENGTH // 2
    changed = torch.cat((subject.others(tokens[:, :half]), tokens[:, half:]), dim=1)
    carrier = next(iter(carriers(subject.trace).values()))
    late = (entering(trace, carrier)[:, -1:] for trace in (subject.trace, subject.run(changed)[1]))
    return difference(*late) > CLOSE


def flat(tensor: Tensor) -> Tensor:
    """The same at every position; itself where it has none."""
    where = axis(tensor, LENGTH)
    if where is None or not tensor.is_floating_point():
        return tensor
    return tensor.narrow(where, LENGTH // 2, 1).expand_as(tensor).contiguous()
