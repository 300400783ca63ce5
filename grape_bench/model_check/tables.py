"""GB207: positions, frequencies, angles and tables in half precision."""

from collections.abc import Iterator

import torch
from torch import Tensor

from grape_bench.finding import Finding, Place, Remark
from grape_bench.model_check.rules import TABLE
from grape_bench.model_check.subject import LENGTH, Subject, axis
from grape_bench.model_check.trace import Operation

HALVES = (torch.bfloat16, torch.float16)
FAR = 4096
_ARITHMETIC = ("_to_copy", "mul", "add", "sub", "rsub", "div", "arange")


def check(subject: Subject, found: dict[str, Finding]) -> Iterator[Finding | Remark]:
    """What runs, then what is stored."""
    reasons: dict[str, str] = {}

    def watch(operation: Operation) -> None:
        reason = _positions(operation) or _angles(operation)
        if reason:
            reasons.setdefault(operation.name, reason)

    subject.run(subject.tokens(), watch=watch)
    for name, module in subject.module.named_modules():
        for word, table in (*module.named_buffers(recurse=False), *vars(module).items()):
            if isinstance(table, Tensor) and (reason := _stored(word, table)):
                reasons.setdefault(name, reason)
    if reasons:
        name, reason = next(iter(reasons.items()))
        more = f" So in {len(reasons) - 1} more modules." if len(reasons) > 1 else ""
        yield TABLE.found(Place(subject.name(name)), reason + more)


def _positions(operation: Operation) -> str:
    """Integer positions that become half numbers."""
    made = [one for one in operation.outputs if one.dtype in HALVES]
    if operation.kind not in _ARITHMETIC or not made:
        return ""
    given = made if operation.kind == "arange" else operation.inputs
    if not any(_counts(one) for one in given if one.dtype in (torch.int32, torch.int64) or operation.kind == "arange"):
        return ""
    half = made[0].dtype
    return f"Positions become {_name(half)} numbers, and {FAR} positions are {_distinct(half)} different ones."


def _angles(operation: Operation) -> str:
    """Angles in half precision, or made from frequencies that were."""
    if operation.kind not in ("cos", "sin", "polar"):
        return ""
    angle = operation.inputs[-1]
    if (half := angle.dtype) in HALVES:
        return f"Angles are {_name(half)} numbers, and {FAR} positions are {_distinct(half)} different ones."
    where = axis(angle, LENGTH)
    if where is None or not angle.is_floating_point():
        return ""
    first = angle.movedim(where, -2).reshape(-1, LENGTH, angle.shape[-1])[0]
    rounded = _rounded(first[1]) if not first[0].any() else None
    if rounded is None:
        return ""
    return f"All {len(first[1])} frequencies are rounded to {_name(rounded)} before they meet positions."


def _stored(word: str, table: Tensor) -> str:
    """A table of cosines or sines whose neighbouring rows are the same."""
    if table.dim() < 2 or not table.is_floating_point() or max(table.shape) <= 2 * LENGTH:
        return ""
    longest = max(range(table.dim()), key=lambda one: table.shape[one])
    lines = table.movedim(longest, 0).flatten(1)
    if lines.shape[1] < 2 or not (lines.min() < 0 and lines.abs().max() <= 1.001):
        return ""
    same = (lines[1:] == lines[:-1]).all(dim=1)
    if same[:LENGTH].any() or not same[-LENGTH:].any():
        return ""
    return f"{int(same.sum())} of {len(lines)} rows of {word} equal the row before."


def _counts(tensor: Tensor) -> bool:
    """Whether it counts up or down by one along an axis."""
    steps = [tensor.diff(dim=one) for one in range(tensor.dim()) if tensor.shape[one] >= LENGTH]
    return any(bool((step == sign).all()) for step in steps for sign in (1, -1))


def _rounded(frequencies: Tensor) -> torch.dtype | None:
    """The half type in which these are exact, though not all are powers of two."""
    if not frequencies.is_floating_point() or (torch.frexp(frequencies)[0].abs() == 0.5).all():
        return None
    return next((one for one in HALVES if torch.equal(frequencies.to(one).to(frequencies), frequencies)), None)


def _distinct(dtype: torch.dtype) -> int:
    return len(torch.arange(FAR).to(dtype).unique())


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
