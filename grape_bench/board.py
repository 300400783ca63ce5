"""A board: encodings that may be compared in one thing, each with what it reached at every seed or in every process."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from grape_bench.cell import AccuracyCell, Cell
from grape_bench.groups import Place, rank
from grape_bench.ranking import SEEDS, Scores
from grape_bench.score import LEARNED_LOSS


@dataclass(frozen=True)
class Source:
    """One run on one machine, as its records name it.

    Args:
        number: by which tables refer to it; origin: the folder or bundle that it is from.
        records: those that count.
    """

    number: int
    origin: str
    machine: str
    run: str
    commit: str | None
    dirty: bool | None
    package: str | None
    records: int


@dataclass(frozen=True)
class Lost:
    """A seed or a process without a figure, and why."""

    unit: int
    status: str
    fault: str
    message: str


@dataclass(frozen=True)
class Member:
    """What one encoding has on a board, over all machines and people.

    Args:
        values: for accuracy by seed, the normalised headline score at the training length; for cost by process, the
            median in ms or the peak in MiB. The same seed again is a replicate, and a seed's replicates are averaged.
        areas: by seed, what `extrapolation.area` says of it.
        tried: seeds or processes with any record.
        records: how many count; sources: their numbers.
    """

    name: str
    values: Scores
    areas: Scores
    tried: tuple[int, ...]
    lost: tuple[Lost, ...]
    records: int
    sources: tuple[int, ...]

    @property
    def speed(self) -> dict[int, float]:
        """For time, -log of the median in ms by process: means and gaps of it are those of ratios."""
        return {process: -math.log(ms) for process, ms in self.values.items() if ms > 0}

    def learned(self, threshold: float) -> frozenset[int]:
        """The seeds whose score at the training length is at least this."""
        return frozenset(seed for seed, score in self.values.items() if score >= threshold)


@dataclass(frozen=True)
class Board:
    """One setting, and those who were measured at it.

    Args:
        cell: what they have in common; its encoding, seed and versions mean nothing.
        hardware: the values of `environment.COMPARED`, equal for all; empty for accuracy, which pools.
        part: for cost the suite whose cells they are; for accuracy the hash of the text that the data were cut from,
            empty where they are made up.
        missing: who has records at other settings of the same metric and suite, and none here.
    """

    cell: Cell
    hardware: tuple[str, ...]
    part: str
    members: tuple[Member, ...]
    missing: tuple[str, ...] = ()

    @property
    def units(self) -> frozenset[int]:
        """All seeds, or processes, that anyone tried."""
        return frozenset(unit for member in self.members for unit in member.tried)

    def bar(self, threshold: float) -> float:
        """The score from which a seed has learned: the threshold, or that of losses for a language model."""
        return LEARNED_LOSS if isinstance(self.cell, AccuracyCell) and self.part else threshold

    def measures(self, threshold: float) -> tuple["Measure", ...]:
        """What its members can be ranked by: the score and, beyond the training length, the area, of those seeds that
        learned; for cost the time or memory, less being better."""
        if not isinstance(self.cell, AccuracyCell):
            return (Measure(self.cell.metric, {one.name: one.speed for one in self.members if one.speed}),)
        made = [Measure(f"score at {self.cell.train_length}", self._of_learners(lambda one: one.values, threshold))]
        areas = self._of_learners(lambda one: one.areas, threshold)
        return (*made, Measure(f"area up to {max(self.cell.test_lengths)}", areas)) if areas else tuple(made)

    def _of_learners(self, scores: Callable[[Member], Scores], threshold: float) -> dict[str, Scores]:
        """Each member's scores on the seeds that it learned; who learned none is left out."""
        found: dict[str, Scores] = {}
        for one in self.members:
            learned = one.learned(self.bar(threshold))
            if kept := {seed: score for seed, score in scores(one).items() if seed in learned}:
                found[one.name] = kept
        return found


@dataclass(frozen=True)
class Measure:
    """A figure that members may be ranked by, the higher the better.

    Args:
        scores: by seed or process, of each that has any.
    """

    title: str
    scores: Mapping[str, Scores]

    @cached_property
    def places(self) -> dict[str, Place]:
        """Where those stand who share a seed or a process with another one; others were never side by side."""
        together = {
            name
            for pair in combinations(self.scores, 2)
            if self.scores[pair[0]].keys() & self.scores[pair[1]].keys()
            for name in pair
        }
        ranking = rank({name: each for name, each in self.scores.items() if name in together})
        return {one.name: one for one in ranking.places}

    @property
    def strangers(self) -> int:
        """Pairs that share too few seeds or processes to be told apart, whatever their figures."""
        ranked = [name for name, place in self.places.items() if not place.underpowered]
        return sum(len(self.scores[a].keys() & self.scores[b].keys()) < SEEDS for a, b in combinations(ranked, 2))
