"""GB201: an absolute position on the embeddings, and a rotation or a bias in attention as well."""

from collections.abc import Iterator

import torch
from torch import Tensor

from grape_bench.finding import Finding, Place, Remark
from grape_bench.model_check.rules import DOUBLED
from grape_bench.model_check.signals import Signals, entering, flat, repetition, signals, spread
from grape_bench.model_check.subject import CLOSE, Subject, carriers


def check(subject: Subject, found: dict[str, Finding]) -> Iterator[Finding | Remark]:
    """Two signals, each where it enters."""
    seen = signals(subject)
    where = subject.name(_source(subject)) if seen.embedded > CLOSE else ""
    if seen.embedded > CLOSE and seen.inside:
        name, size = next(iter(seen.inside.items()))
        yield DOUBLED.found(
            Place(where),
            f"The embeddings carry an absolute position ({seen.embedded:.2g} of their scale) and {name} has a position "
            f"signal too (its scores move by {size:.2g} between equal keys; so in {_of(seen)}).",
        )
    elif seen.embedded > CLOSE:
        yield Remark(
            DOUBLED.code,
            "fact",
            f"positions are absolute by design: they enter at {where}, {seen.embedded:.2g} of the embeddings' scale.",
        )
    elif seen.inside:
        yield Remark(DOUBLED.code, "fact", f"position enters inside attention alone, in {_of(seen)}.")
    else:
        yield Remark(
            DOUBLED.code, "fact", "no position was seen, neither on the embeddings nor in the scores of attention."
        )


def _of(seen: Signals) -> str:
    return f"{len(seen.inside)} of {len(seen.attended)} attentions"


def _source(subject: Subject) -> str:
    """The module whose output, made flat, takes the signal away; else the innermost around attention that adds it."""
    repeated = repetition(subject)
    _, trace = subject.run(repeated)
    carrier = next(iter(carriers(trace).values()))
    earlier = set(trace.order[: trace.order.index(carrier)])
    for visit in trace.visits:
        if visit.name == carrier:
            break
        born = any(map(_varies, visit.outputs)) and not any(map(_varies, visit.inputs))
        if visit.name in earlier and born:
            _, without = subject.run(repeated, after={visit.name: flat})
            if spread(entering(without, carrier)) <= CLOSE:
                return visit.name
    around = [visit for visit in trace.visits if carrier.startswith(f"{visit.name}." if visit.name else "")]
    return next((one.name for one in around if not any(map(_varies, one.inputs))), "")


def _varies(tensor: Tensor) -> bool:
    return tensor.is_floating_point() and tensor.numel() > 0 and not torch.equal(tensor, flat(tensor))
