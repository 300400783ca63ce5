"""The Pareto front of what encodings buy against what they cost."""

from collections.abc import Sequence, Set
from dataclasses import dataclass

from grape_bench.interval import Interval


@dataclass(frozen=True)
class Offer:
    """One encoding's score, which is to be high, and its costs, which are to be low.

    Args:
        costs: such as time and memory, in the same order and units for all; an exact one has no width.
    """

    name: str
    score: float
    costs: tuple[Interval, ...]


def beaten(offers: Sequence[Offer], apart: Set[tuple[str, str]]) -> dict[str, str]:
    """Who is off the front, and by whom.

    One beats another whose figures are all at least as good, and one of them surely better: the score because the two
    can be told apart, a cost because the intervals do not meet. So noise alone takes none off the front.

    Args:
        apart: the pairs whose scores can be told apart, the better one first.

    Returns:
        For each that is beaten, the one with the highest score that beats it.
    """
    best = sorted(offers, key=lambda one: -one.score)
    winners = {loser.name: [one.name for one in best if _beats(one, loser, apart)] for loser in offers}
    return {name: found[0] for name, found in winners.items() if found}


def _beats(one: Offer, other: Offer, apart: Set[tuple[str, str]]) -> bool:
    costs = list(zip(one.costs, other.costs, strict=True))
    as_good = one.score >= other.score and all(a.mid <= b.mid for a, b in costs)
    return as_good and ((one.name, other.name) in apart or any(a.high < b.low for a, b in costs))
