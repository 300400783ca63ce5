"""Claims about cost: what the blocks of one machine say of encodings, setting by setting."""

from collections.abc import Iterable
from itertools import product

from grape_bench.bench import Bench, Grid
from grape_bench.evidence import Evidence, Pair, judge, pairs, said
from grape_bench.suite_claim import Claim


def evidence(claim: Claim, bench: Bench) -> tuple[Evidence, ...]:
    """Each pair at each length of each setting that the claim speaks of."""
    places = [
        (grid, length)
        for grid in bench.grids
        for length in grid.lengths
        if _speaks_of(claim, grid, length)
        if _has_all(claim, (one for one, at in grid.outcomes if at == length))
    ]
    wanted = list(product(places, pairs(claim)))
    return tuple(_pair(claim, bench, place, pair, len(wanted)) for place, pair in wanted)


def _pair(claim: Claim, bench: Bench, place: tuple[Grid, int], pair: Pair, family: int) -> Evidence:
    grid, length = place
    several = len({one.setting for one in bench.grids if one.metric == grid.metric and one.scope == grid.scope}) > 1
    setting = f" ({grid.setting})" if several else ""
    what = f"{said(claim, *pair)} in {grid.metric} of the {grid.scope} at {length}{setting}"
    sides = [grid.outcomes[one, length] for one in pair]
    comparison = bench.against(grid, pair[0], length, pair[1], family=family)
    if comparison is None:
        absent = [f"{one.cell.encoding} is {one.standing}" for one in sides if one.standing != "ok"]
        return Evidence(what, "undecided", remark=", ".join(absent) or "not measured side by side")
    return Evidence(what, judge(claim, comparison), comparison, tuple(one.cell.id for one in sides))


def _speaks_of(claim: Claim, grid: Grid, length: int) -> bool:
    found = (grid.scope, grid.setting.backend, grid.setting.heads, grid.setting.dtype, length)
    wanted = (claim.scope, claim.backend, claim.heads, claim.dtype, claim.at)
    return grid.metric == claim.metric and all(a in (None, b) for a, b in zip(wanted, found, strict=True))


def _has_all(claim: Claim, encodings: Iterable[str]) -> bool:
    return {*claim.encodings, *claim.against} <= {*encodings}
