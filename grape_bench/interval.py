"""Intervals of means over seeds, and of ratios over rounds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import nctdtrinc, stdtr, stdtrit  # scipy.stats would take as long to import as a report

LEVEL = 0.95
POWER = 0.8  # how often a difference that is called detectable would be found
_RESAMPLES = 2000
_PROCESSES = 3  # from which their medians say how processes differ

Floats = NDArray[np.float64]
Rows = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Interval:
    """An interval around an estimate, at 95 % unless several are read together.

    Args:
        n: values it rests on; of a single one `low` and `high` are nan.
    """

    low: float
    mid: float
    high: float
    n: int = 1

    @property
    def known(self) -> bool:
        return not math.isnan(self.low)

    @property
    def half(self) -> float:
        """Half its width."""
        return (self.high - self.low) / 2

    @classmethod
    def exact(cls, value: float) -> "Interval":
        """A figure that does not scatter, such as a peak of memory."""
        return cls(value, value, value)


def joint(count: int) -> float:
    """The level of each of so many intervals that are read together, so that all hold at 95 % (Bonferroni)."""
    return 1 - (1 - LEVEL) / count


def mean_interval(values: Sequence[float], level: float = LEVEL) -> Interval:
    """Mean of independent values with its t interval.

        mean ± t((1 + level) / 2, n - 1) sd / sqrt(n)

    With few seeds this covers where bootstraps over seeds do not: 94 to 96 % at every n, against 76 % for a
    percentile bootstrap at n = 3.
    """
    n = len(values)
    mid = math.fsum(values) / n
    if n == 1:
        return Interval(math.nan, mid, math.nan)
    half = _half(float(np.std(values, ddof=1)), n, level)
    return Interval(mid - half, mid, mid + half, n)


def chance(values: Sequence[float]) -> float:
    """How often means as far from 0 as this one come of values around 0: the two-sided p of a t test.

    It is 1 for a single value, which says nothing of how values scatter.
    """
    n = len(values)
    mid, sd = math.fsum(values) / n, float(np.std(values, ddof=1)) if n > 1 else math.inf
    if sd == 0:
        return float(mid == 0)
    return 2 * float(stdtr(max(n - 1, 1), -abs(mid) * math.sqrt(n) / sd))


def detectable(values: Sequence[float], level: float = LEVEL) -> float:
    """The smallest true mean that as many values of this scatter would tell from 0 four times in five.

        delta sd / sqrt(n),   P(T > t((1 + level) / 2, n - 1)) = 0.8   for T noncentral by delta, of n - 1 degrees

    Args:
        level: of the interval that must leave 0 out, see `joint`.

    Returns:
        nan for a single value.
    """
    n = len(values)
    if n == 1:
        return math.nan
    return _effect(n, level) * float(np.std(values, ddof=1)) / math.sqrt(n)


def enough(values: Sequence[float], gap: float, level: float = LEVEL, most: int = 100) -> int | None:
    """How many values of this mean and scatter have a t interval that reaches less far than `gap` from the mean.

    Args:
        values: at least two; gap: above 0.
        most: where to stop looking.

    Returns:
        None if so many do not.
    """
    sd = float(np.std(values, ddof=1))
    return next((n for n in range(2, most + 1) if _half(sd, n, level) < gap), None)


def _half(sd: float, n: int, level: float) -> float:
    return float(stdtrit(n - 1, (1 + level) / 2)) * sd / math.sqrt(n)


@cache  # a slow root that depends on these two alone
def _effect(n: int, level: float) -> float:
    return float(nctdtrinc(n - 1, 1 - POWER, stdtrit(n - 1, (1 + level) / 2)))


def paired_ratio(a: Rows, b: Rows, *, seed: int, level: float = LEVEL) -> Interval:
    """Time of a over time of b, each round of a against the same round of b.

        exp(median over rounds of (log a_r - log b_r))

    Of three processes and more it is the wider of two intervals: this bootstrap, and a t interval of the processes'
    medians, because a bootstrap over a few processes is too narrow where they differ.

    A round lasts moments, so what slows the machine slows both and leaves the ratio. The interval is a percentile
    bootstrap in two steps: processes are drawn first and rounds within each drawn process, because the rounds
    of one process share its memory layout and are less independent than they are many. Few processes that differ by
    much are its limit: in simulations with 3 % of noise a round it covered 98 % where three processes did not differ,
    92 % where they differed by 1 % and 81 % where they differed by 2 %; five processes gave 95 % and 89 %.

    Args:
        a, b: one row a process; row i of both is the same process, sample r of both the same round.
        seed: of the bootstrap.
        level: of the interval, see `joint`.

    Raises:
        ValueError: the two differ in processes or rounds.
    """
    if [len(row) for row in a] != [len(row) for row in b]:
        raise ValueError("a paired ratio needs the same processes and rounds on both sides")
    logs = [np.log(one) - np.log(other) for one, other in zip(a, b, strict=True)]
    drawn = _medians(logs, np.random.default_rng(seed))
    rounds = _exponential(float(np.median(np.concatenate(logs))), drawn, sum(map(len, logs)), level)
    if len(logs) < _PROCESSES:
        return rounds
    processes = mean_interval([float(np.median(row)) for row in logs], level)
    low, high = min(rounds.low, math.exp(processes.low)), max(rounds.high, math.exp(processes.high))
    return Interval(low, rounds.mid, high, rounds.n)


def unpaired_ratio(a: Rows, b: Rows, *, seed: int, level: float = LEVEL) -> Interval:
    """Time of a over time of b where they were measured apart, such as at two commits.

        exp(median log a - median log b)

    Of three processes and more on both sides it is the wider of a bootstrap and a t interval of the processes' medians,
    for the reason given at `paired_ratio`.

    Args:
        a, b: one row a process; the two are resampled apart.
        seed: of the bootstrap.
        level: of the interval, see `joint`.
    """
    rng = np.random.default_rng(seed)
    logs_a, logs_b = [np.log(row) for row in a], [np.log(row) for row in b]
    mid = float(np.median(np.concatenate(logs_a)) - np.median(np.concatenate(logs_b)))
    n = min(sum(map(len, a)), sum(map(len, b)))
    rounds = _exponential(mid, _medians(logs_a, rng) - _medians(logs_b, rng), n, level)
    if min(len(a), len(b)) < _PROCESSES:
        return rounds
    medians = [[float(np.median(row)) for row in rows] for rows in (logs_a, logs_b)]
    error = math.sqrt(sum(float(np.var(row, ddof=1)) / len(row) for row in medians))
    half = float(stdtrit(min(len(a), len(b)) - 1, (1 + level) / 2)) * error
    gap = float(np.mean(medians[0]) - np.mean(medians[1]))
    return Interval(min(rounds.low, math.exp(gap - half)), rounds.mid, max(rounds.high, math.exp(gap + half)), n)


def _exponential(mid: float, drawn: Floats, n: int, level: float) -> Interval:
    if n == 1:
        return Interval(math.nan, math.exp(mid), math.nan)
    tail = (1 - level) / 2
    low, high = np.quantile(drawn, (tail, 1 - tail))
    return Interval(math.exp(low), math.exp(mid), math.exp(high), n)


def _medians(rows: Sequence[Floats], rng: np.random.Generator) -> Floats:
    """The median of each resample, (resamples,). It works on ranks: 16 bits part three times faster than floats."""
    pooled = np.concatenate(rows)
    order = np.argsort(pooled, kind="stable")
    ranks = np.empty(len(pooled), dtype=np.uint16 if len(pooled) < 2**16 else np.int64)
    ranks[order] = np.arange(len(pooled))
    counts = np.array([len(row) for row in rows])
    table = np.zeros((len(rows), counts.max()), dtype=ranks.dtype)
    for row, part in zip(table, np.split(ranks, np.cumsum(counts)[:-1]), strict=True):
        row[: len(part)] = part
    chosen = rng.integers(0, len(rows), (_RESAMPLES, len(rows), 1))
    # Of processes with unlike numbers of rounds each gives as many as the shortest has.
    rounds = rng.integers(0, counts[chosen], (_RESAMPLES, len(rows), counts.min()))
    drawn = table[chosen, rounds].reshape(_RESAMPLES, -1)
    middle = ((drawn.shape[1] - 1) // 2, drawn.shape[1] // 2)
    parted = np.partition(drawn, middle, axis=1)
    values = pooled[order]
    return np.asarray((values[parted[:, middle[0]]] + values[parted[:, middle[1]]]) / 2)
