"""Many encodings over the same seeds: who can be told from whom, as groups and as ranges of ranks."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from grape_bench.interval import LEVEL, Interval, chance, detectable, joint, mean_interval
from grape_bench.ranking import SEEDS, Scores, gaps

Pair = tuple[str, str]


@dataclass(frozen=True)
class Place:
    """Where one encoding stands among others.

    Args:
        mean: of its own scores, with the plain interval.
        group: 1 for the best and who cannot be told from it, 2 for the best of the others and who cannot be told from
            that one, and so on; 0 where it is underpowered.
        best, worst: the ranks that it may hold, 0 where it is underpowered.
        detectable: the smallest gap to another encoding that its seeds would show, nan where nothing says.
    """

    name: str
    mean: Interval
    group: int = 0
    best: int = 0
    worst: int = 0
    detectable: float = math.nan

    @property
    def underpowered(self) -> bool:
        """It has too few seeds for a rank."""
        return not self.group


@dataclass(frozen=True)
class Ranking:
    """Encodings by their means, the best first.

    Args:
        apart: the pairs that can be told apart, the better one first.
    """

    places: tuple[Place, ...]
    apart: frozenset[Pair]


def rank(scores: Mapping[str, Scores]) -> Ranking:
    """Put encodings in an order as far as their seeds allow.

    Every pair is tested by a t test of its differences seed by seed, and Holm's procedure holds the chance of even one
    false split at 5 % over all pairs. An encoding's best rank is 1 + how many are surely better, its worst one the
    number of encodings less how many are surely worse; all these ranges hold together at 95 %. Who has fewer than
    five seeds gets no rank, and since it may be anywhere, the ranges of the others leave room for it.

    Holm, and not a permutation of labels within seeds: see docs/decisions/0007-holm-over-all-pairs.md.

    Args:
        scores: of each encoding by seed, higher being better; each has at least one.
    """
    means = {name: mean_interval(list(each.values())) for name, each in scores.items()}
    names = sorted(scores, key=lambda name: -means[name].mid)
    apart = _apart(names, scores)
    groups = _groups([name for name in names if len(scores[name]) >= SEEDS], apart)
    return Ranking(tuple(_place(name, means[name], groups.get(name, 0), scores, apart) for name in names), apart)


def holm(chances: Mapping[Pair, float]) -> frozenset[Pair]:
    """The pairs whose difference holds when all of them are looked at together.

        the i-th smallest of m p-values is held against 0.05 / (m + 1 - i), up to the first that fails

    Args:
        chances: the p-value of each pair by itself.
    """
    kept: list[Pair] = []
    for pair in sorted(chances, key=lambda one: chances[one]):
        if chances[pair] > (1 - LEVEL) / (len(chances) - len(kept)):
            break
        kept.append(pair)
    return frozenset(kept)


def _apart(names: Sequence[str], scores: Mapping[str, Scores]) -> frozenset[Pair]:
    chances: dict[Pair, float] = {}
    for one, other in combinations(names, 2):
        found = gaps(scores[one], scores[other])
        if len(found) >= SEEDS:
            # On the seeds that both have, the order may be another one than that of the means.
            chances[(one, other) if math.fsum(found) >= 0 else (other, one)] = chance(found)
    return holm(chances)


def _groups(names: Sequence[str], apart: frozenset[Pair]) -> dict[str, int]:
    """The number of each one's group: who cannot be told from the best is 1, from the best of the others 2."""
    found: dict[str, int] = {}
    left = list(names)
    while left:
        number = max(found.values(), default=0) + 1
        # Mostly the one with the best mean, which may yet be surely worse than another on the seeds that both have.
        best = min(left, key=lambda name: sum((one, name) in apart for one in left))
        tied = [one for one in left if not {(best, one), (one, best)} & apart]
        found |= dict.fromkeys(tied, number)
        left = [one for one in left if one not in tied]
    return found


def _place(name: str, mean: Interval, group: int, scores: Mapping[str, Scores], apart: frozenset[Pair]) -> Place:
    level = joint(max(math.comb(len(scores), 2), 1))
    others = (gaps(scores[name], each) for other, each in scores.items() if other != name)
    found = [detectable(one, level) for one in others if len(one) > 1]
    gap = statistics.median(found) if found else math.nan
    if not group:
        return Place(name, mean, detectable=gap)
    above = sum(worse == name for _, worse in apart)
    below = sum(better == name for better, _ in apart)
    return Place(name, mean, group, 1 + above, len(scores) - below, gap)
