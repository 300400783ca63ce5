"""Claims about cost: what the blocks of one machine say of encodings or backends, setting by setting."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from grape_bench.bench import Bench, Grid
from grape_bench.evidence import Evidence, Pair, judge, pairs, said
from grape_bench.suite_claim import Claim


def evidence(claim: Claim, bench: Bench) -> tuple[Evidence, ...]:
    """Each pair at each length of each setting that the claim speaks of."""
    wanted = [(place, pair) for place in _places(claim, bench) for pair in pairs(claim)]
    return tuple(_pair(claim, bench, place, pair, len(wanted)) for place, pair in wanted)


class _Place(NamedTuple):
    """Where the encodings of a claim stand, and what they are held against."""

    own: Grid
    other: Grid
    length: int


def _places(claim: Claim, bench: Bench) -> Iterator[_Place]:
    for grid in bench.grids:
        for other, length in product(_others(claim, bench, grid), grid.lengths):
            has_all = _has(grid, claim.encodings, length) and _has(other, claim.against or claim.encodings, length)
            if has_all and _speaks_of(claim, grid, length):
                yield _Place(grid, other, length)


def _others(claim: Claim, bench: Bench, grid: Grid) -> Sequence[Grid]:
    if claim.against_backend is None:
        return [grid]
    alike = (grid.scope, grid.metric, grid.setting._replace(backend=claim.against_backend))
    return [one for one in bench.grids if (one.scope, one.metric, one.setting) == alike]


def _pair(claim: Claim, bench: Bench, place: _Place, pair: Pair, family: int) -> Evidence:
    grid, length = place.own, place.length
    several = len({one.setting for one in bench.grids if one.metric == grid.metric and one.scope == grid.scope}) > 1
    setting = f" ({grid.setting})" if several else ""
    grids = [place.own, place.other]
    if claim.relation == "below":
        grids.reverse()
    sides = list(zip(pair, grids, strict=True))
    names = [f"{name} ({one.setting.backend})" for name, one in sides] if claim.against_backend else pair
    what = f"{said(claim, *names)} in {grid.metric} of the {grid.scope} at {length}{setting}"
    a, b = (one.outcomes[name, length] for name, one in sides)
    comparison = bench.between(a, b, family=family) if a.standing == "ok" else None
    if comparison is None:
        absent = [f"{one.cell.encoding} is {one.standing}" for one in (a, b) if one.standing != "ok"]
        return Evidence(what, "undecided", remark=", ".join(absent) or "not measured side by side")
    word = judge(claim, comparison)
    remark = "a longer measurement may decide it" if word == "undecided" else ""
    return Evidence(what, word, comparison, (a.cell.id, b.cell.id), remark)


def _speaks_of(claim: Claim, grid: Grid, length: int) -> bool:
    found = (grid.scope, grid.setting.backend, grid.setting.heads, grid.setting.dtype, length)
    wanted = (claim.scope, claim.backend, claim.heads, claim.dtype, claim.at)
    return grid.metric == claim.metric and all(a in (None, b) for a, b in zip(wanted, found, strict=True))


def _has(grid: Grid, encodings: Sequence[str], length: int) -> bool:
    return all((one, length) in grid.outcomes for one in encodings)
