"""Two calls side by side: the first module that was handed the same and returned something else."""

from collections import Counter
from collections.abc import Callable, Iterable

from torch import Tensor

from grape_bench.model_check.subject import axis, difference
from grape_bench.model_check.trace import Trace, Visit

Pair = Callable[[Tensor, Tensor], tuple[Tensor, Tensor] | None]


def culprit(one: Trace, other: Trace, pair: Pair, tolerance: float) -> str:
    """The innermost and earliest module at which two calls part.

    Args:
        pair: of two tensors the parts that ought to be equal, or None where these cannot be compared.
        tolerance: a part of the scale.

    Returns:
        the module's name; the model itself, "", where no module inside it does.
    """
    later = _by_turn(other.visits)
    for key, first in _by_turn(one.visits).items():
        second = later.get(key)
        if second is None:
            continue
        if _apart(first.inputs, second.inputs, pair) <= tolerance < _apart(first.outputs, second.outputs, pair):
            return first.name
    return ""


def _by_turn(visits: Iterable[Visit]) -> dict[tuple[str, int], Visit]:
    """Visits by name and by how often the module was called before; in the order in which they were done."""
    seen: Counter[str] = Counter()
    found = {}
    for one in visits:
        found[one.name, seen[one.name]] = one
        seen[one.name] += 1
    return found


def _apart(ones: tuple[Tensor, ...], others: tuple[Tensor, ...], pair: Pair) -> float:
    pairs = [pair(one, other) for one, other in zip(ones, others, strict=False)]
    return max((difference(*both) for both in pairs if both is not None), default=0.0)


def rows(length: int, start: int, stop: int) -> Pair:
    """Two calls of one length, compared at positions start .. stop-1."""

    def pair(one: Tensor, other: Tensor) -> tuple[Tensor, Tensor] | None:
        where = axis(one, length)
        if where is None or one.shape != other.shape:
            return None
        return one.narrow(where, start, stop - start), other.narrow(where, start, stop - start)

    return pair
