"""What encodings cost beside what they buy, from one suite's records: the offers of a Pareto front."""

from collections.abc import Iterator, Mapping
from itertools import product

from grape_bench.bench import Bench, Grid, value
from grape_bench.interval import Interval
from grape_bench.pareto import Offer
from grape_bench.sections.columns import largest
from grape_bench.view import View

_METRICS = (
    ("train_step_ms", "forward_backward_ms", "forward_ms"),
    ("peak_mib",),
)  # of each kind the first that is there
_Price = tuple[Bench, Grid, int]


def offers(view: View, scores: Mapping[str, float]) -> list[Offer]:
    """Those encodings whose time and memory are known, as far as the suite measures these."""
    asked = list(prices(view))
    costs = {name: [_cost(*price, name) for price in asked] for name in scores} if asked else {}
    return [
        Offer(name, scores[name], tuple(one for one in found if one))
        for name, found in costs.items()
        if None not in found
    ]


def priced(view: View) -> str:
    """What the front weighs, and who is off it, in words."""
    costs = [f"{grid.metric} of the {grid.scope} at {at} tokens ({grid.setting})" for _, grid, at in prices(view)]
    return f"{' and '.join(costs)}; beaten is who has another one's figures all at least as good, and one surely better"


def prices(view: View) -> Iterator[_Price]:
    """The grid and length at which each cost of an offer was measured."""
    for metrics in _METRICS:
        found = (largest(view, scope, metric) for scope, metric in product(("model", "attention"), metrics))
        yield from [one for one in found if one][:1]


def _cost(bench: Bench, grid: Grid, length: int, encoding: str) -> Interval | None:
    amount = value(grid.outcomes.get((encoding, length)))
    if amount is None:
        return None
    if not bench.baseline or encoding == bench.baseline:
        return Interval.exact(1 if bench.baseline else amount)
    found = bench.against(grid, encoding, length)
    return found.interval if found else None
