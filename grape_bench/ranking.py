"""The one comparer: two sets of records, an interval, and one of four words."""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from grape_bench.cell import AccuracyCell
from grape_bench.environment import differences
from grape_bench.interval import Interval, joint, mean_interval, paired_ratio, unpaired_ratio
from grape_bench.record import AccuracyReading, MemoryReading, Record, TimeReading

Scores = Mapping[int, float]  # one encoding's, by seed
Word = Literal["faster", "slower", "smaller", "larger", "better", "worse", "same", "unclear"]

RATIO_MARGIN = 0.03  # an A/A pair on a shared machine spreads about this much
SCORE_MARGIN = 0.02  # in accuracy, of 1
SEEDS = 5  # from which ranks and verdicts are given; with 3, a gap among 28 is found from 17 standard deviations on


@dataclass(frozen=True)
class Comparison:
    """What a is against b.

    Args:
        interval: of the ratio a / b for time and memory, of the difference a - b for accuracy.
        difference: it is of a difference.
        paired: round by round of the same processes, or seed by seed. Unpaired times are in units of the sentinel
            where both sides have one, which leaves out what made the whole machine slower on one of the days.
    """

    word: Word
    interval: Interval
    margin: float
    paired: bool = True
    difference: bool = False


def compare(
    a: Sequence[Record],
    b: Sequence[Record],
    margin: float | None = None,
    *,
    length: int | None = None,
    group: str | None = None,
    force: bool = False,
    family: int = 1,
) -> Comparison:
    """Say what a is against b, both being records of one cell, or of one encoding over seeds.

    The margin makes a band of no interest around equality, and the word is where the interval lies: inside it `same`,
    wholly below it `faster` (`smaller`, `worse`), wholly above it `slower` (`larger`, `better`), across an edge
    `unclear`. So "no difference found" never reads as "no difference".

    Args:
        a, b: records with a reading, all of one kind.
        margin: 0.03 means 3 % for ratios (band from 1/1.03 to 1.03) and 0.03 of accuracy; None for the defaults.
        force: compare costs of unlike environments, for a caller who says so to the reader.
        family: how many comparisons are read together, such as those of one block; all their intervals hold at 95 %.
        length, group: which score of an accuracy; None for the training length, and the headline group.

    Raises:
        ValueError: nothing to compare, unlike readings, no seed in common, scores on two texts, or cost records of
            environments that differ; it names the key.
    """
    match _reading(a), _reading(b):
        case TimeReading(), TimeReading():
            _same_environment(a, b, force)
            return _times(a, b, RATIO_MARGIN if margin is None else margin, joint(family))
        case MemoryReading() as one, MemoryReading() as other:
            _same_environment(a, b, force)
            return _memories(one, other, RATIO_MARGIN if margin is None else margin)
        case AccuracyReading(), AccuracyReading():
            _same_text(a, b)
            left, right = scores(a, length, group), scores(b, length, group)
            return compare_scores(left, right, SCORE_MARGIN if margin is None else margin, family=family)
        case one, other:
            raise ValueError(f"a {one.kind} and a {other.kind} reading cannot be compared")


def compare_scores(a: Scores, b: Scores, margin: float = SCORE_MARGIN, *, family: int = 1) -> Comparison:
    """Say what a is against b, seed by seed; see `compare`.

    Raises:
        ValueError: they have no seed in common.
    """
    found = gaps(a, b)
    if not found:
        raise ValueError("accuracies are compared seed by seed, and these share no seed with such a score")
    interval = mean_interval(found, joint(family))
    return Comparison(judge(interval, (-margin, margin), ("worse", "better")), interval, margin, difference=True)


def gaps(a: Scores, b: Scores) -> list[float]:
    """What a has over b, on each seed that both have."""
    return [a[seed] - b[seed] for seed in sorted(a.keys() & b.keys())]


def judge(interval: Interval, band: tuple[float, float], words: tuple[Word, Word]) -> Word:
    """Where an interval lies against a band: `words` for below and above it."""
    low, high = band
    if not interval.known:
        return "unclear"
    if low <= interval.low and interval.high <= high:
        return "same"
    if interval.high < low:
        return words[0]
    return words[1] if interval.low > high else "unclear"


def score(record: Record, length: int | None = None, group: str | None = None) -> float | None:
    """Accuracy of one training, or its loss with a minus: more is better.

    Args:
        length: None for the training length; group: None for the headline.
    """
    assert isinstance(record.cell, AccuracyCell)
    assert isinstance(record.reading, AccuracyReading)
    length = record.cell.train_length if length is None else length
    group = group or record.reading.headline
    return next((one.merit for one in record.reading.scores if (one.length, one.group) == (length, group)), None)


def scores(records: Iterable[Record], length: int | None = None, group: str | None = None) -> dict[int, float]:
    """The score on each seed that was tested so; see `score`."""
    found = {seed: score(one, length, group) for seed, one in by_seed(records).items()}
    return {seed: one for seed, one in found.items() if one is not None}


def losses(records: Iterable[Record], step: int | None = None) -> dict[int, float]:
    """The training loss on each seed: the mean over those steps of the curve among which `step` is (None: the last)."""
    return {seed: one for seed, record in by_seed(records).items() if (one := _loss(record, step)) is not None}


def _loss(record: Record, step: int | None) -> float | None:
    assert isinstance(record.reading, AccuracyReading)
    curve = record.reading.curve
    if step is None:
        return curve[-1].loss if curve else None
    return next((point.loss for point in curve if point.step >= step), None)


def by_seed(records: Iterable[Record]) -> dict[int, Record]:
    """The latest record of each seed: the same seed measured again is a replicate, not a further sample."""
    latest = sorted((one for one in records if isinstance(one.cell, AccuracyCell)), key=lambda one: one.at)
    return {one.cell.seed: one for one in latest if isinstance(one.cell, AccuracyCell)}


def seed_of(*names: str) -> int:
    """A seed for a bootstrap from what it is about, so that a report reproduces byte for byte."""
    return int.from_bytes(hashlib.sha256("\n".join(names).encode()).digest()[:8])


def _times(a: Sequence[Record], b: Sequence[Record], margin: float, level: float) -> Comparison:
    left, right = _samples(a), _samples(b)
    shared = sorted(left.keys() & right.keys())
    seed = seed_of(a[0].cell.id, b[0].cell.id, *sorted(left), *sorted(right))
    if shared:
        interval = paired_ratio([left[run] for run in shared], [right[run] for run in shared], seed=seed, level=level)
    else:
        one, other = _steadied(a), _steadied(b)
        if one is None or other is None:
            one, other = list(left.values()), list(right.values())
        interval = unpaired_ratio(one, other, seed=seed, level=level)
    return Comparison(judge(interval, ratio_band(margin), ("faster", "slower")), interval, margin, bool(shared))


def _steadied(records: Iterable[Record]) -> list[tuple[float, ...]] | None:
    """Times in units of the sentinel of the same rounds, a row a process: on another day the machine is another one.

    None where a record has no sentinel.
    """
    readings = [one.reading for one in records if isinstance(one.reading, TimeReading)]
    if any(len(one.sentinel_ms) != len(one.samples_ms) for one in readings):
        return None
    return [tuple(ms / own for ms, own in zip(one.samples_ms, one.sentinel_ms, strict=True)) for one in readings]


def _memories(a: MemoryReading, b: MemoryReading, margin: float) -> Comparison:
    equal = a.peak_mib == b.peak_mib
    ratio = 1.0 if equal else a.peak_mib / b.peak_mib if b.peak_mib else math.inf
    interval = Interval.exact(ratio)
    return Comparison(judge(interval, ratio_band(margin), ("smaller", "larger")), interval, margin)


def _reading(records: Sequence[Record]) -> TimeReading | MemoryReading | AccuracyReading:
    kinds = {type(one.reading) for one in records}
    reading = records[-1].reading if records else None
    if reading is None or len(kinds) != 1:
        raise ValueError("each side of a comparison needs records with readings of one kind")
    return reading


def _samples(records: Iterable[Record]) -> dict[str, tuple[float, ...]]:
    return {one.block_run: one.reading.samples_ms for one in records if isinstance(one.reading, TimeReading)}


def _same_environment(a: Sequence[Record], b: Sequence[Record], force: bool) -> None:
    first = a[0].environment
    for other in () if force else (*a[1:], *b):
        for sentence in differences(first, other.environment):
            raise ValueError(f"these records are not comparable: {sentence}")


def _same_text(a: Sequence[Record], b: Sequence[Record]) -> None:
    texts = {one.reading.text_sha for one in (*a, *b) if isinstance(one.reading, AccuracyReading)}
    if len(texts) > 1:
        raise ValueError(f"these records are not comparable: they are of texts {' and '.join(sorted(map(str, texts)))}")


def ratio_band(margin: float) -> tuple[float, float]:
    """The ratios that are no further from 1 than a margin, up or down."""
    return 1 / (1 + margin), 1 + margin
