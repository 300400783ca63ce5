"""How well trainings carry to longer inputs: normalised scores by length, and the area under them."""

import math
from collections.abc import Sequence
from itertools import pairwise

from grape_bench.cell import AccuracyCell
from grape_bench.ranking import by_seed
from grape_bench.record import AccuracyReading, Record
from grape_bench.trial import Trial


def beyond(lengths: Sequence[int], train_length: int) -> tuple[int, ...]:
    """The lengths that make an area: the training length and all above; none where these are fewer than two."""
    found = tuple(one for one in sorted(lengths) if one >= train_length)
    return found if train_length in found and len(found) > 1 else ()


def normalised(trial: Trial, length: int) -> dict[int, float]:
    """The normalised headline score at a length (tokens), on each seed that learned and was tested so."""
    found = {seed: _by_length(one).get(length) for seed, one in by_seed(trial.learners).items()}
    return {seed: one for seed, one in found.items() if one is not None}


def areas(trial: Trial) -> dict[int, float]:
    """The area on each seed that learned; empty where no longer input was tested."""
    found = {seed: area(one) for seed, one in by_seed(trial.learners).items()}
    return {seed: one for seed, one in found.items() if one is not None}


def area(record: Record) -> float | None:
    """The mean normalised score from the training length up, each doubling of the length weighing the same.

        1 / log2(longest / trained)  integral of s(L) d log2 L,   by trapezoids between the tested lengths

    1 is a perfect reader at every length, 0 one without positions. None where no longer input was tested.

    Source: ours.
    """
    assert isinstance(record.cell, AccuracyCell)
    scores = _by_length(record)
    lengths = beyond(list(scores), record.cell.train_length)
    if not lengths:
        return None
    total = math.fsum(math.log2(b / a) * (scores[a] + scores[b]) / 2 for a, b in pairwise(lengths))
    return total / math.log2(lengths[-1] / lengths[0])


def _by_length(record: Record) -> dict[int, float]:
    assert isinstance(record.reading, AccuracyReading)
    headline = record.reading.headline
    return {one.length: one.normalised for one in record.reading.scores if one.group == headline and one.blind < 1}
