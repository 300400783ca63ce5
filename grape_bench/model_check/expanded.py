"""GB205: a bias (B, H, T, S) in memory whose batch rows are all the same."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from grape_bench.finding import Finding, Place, Remark
from grape_bench.model_check.rules import EXPANDED
from grape_bench.model_check.subject import LENGTH, PADS, NotChecked, Subject
from grape_bench.model_check.trace import Operation


def check(subject: Subject, found: dict[str, Finding]) -> Iterator[Finding | Remark]:
    """Its members differ in tokens, and in padding where the model takes a mask; a bias does not."""
    if subject.batch < 2:
        raise NotChecked("the example inputs are a batch of one.")
    copies: dict[str, Tensor] = {}

    def watch(operation: Operation) -> None:
        for one in operation.outputs:
            if operation.name not in copies and _is_copied_bias(one, subject.batch):
                copies[operation.name] = one.detach().clone()

    subject.run(subject.tokens(), watch=watch, **_padding(subject))
    if copies:
        name, bias = next(iter(copies.items()))
        more = f"; so in {len(copies) - 1} more modules" if len(copies) > 1 else ""
        yield EXPANDED.found(
            Place(subject.name(name)),
            f"A bias {tuple(bias.shape)} has {len(bias)} equal batch rows: {bias[1:].nbytes} of {bias.nbytes} bytes "
            f"repeat the first row{more}.",
        )


def _padding(subject: Subject) -> dict[str, Any]:
    """Unlike from row to row, so that what depends on the mask differs too."""
    if "mask" not in subject.adapter.offers:
        return {}
    mask = torch.ones_like(subject.tokens(), dtype=torch.bool)
    for row in range(subject.batch):
        mask[row, : row % (PADS + 1)] = False
    return {"mask": mask}


def _is_copied_bias(tensor: Tensor, batch: int) -> bool:
    if tensor.dim() != 4 or len(tensor) != batch or tensor.shape[-2:] != (LENGTH, LENGTH):
        return False
    if not tensor.is_floating_point() or tensor.stride(0) == 0 or not bool((tensor == tensor[:1]).all()):
        return False
    values = tensor[0, 0]
    return len(values[values > -1e3].unique()) > 2  # a mask has one or two
