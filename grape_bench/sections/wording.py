"""How figures and outcomes are written."""

import math
from collections import Counter
from collections.abc import Callable, Sequence

from grape_bench.bench import CONTENDED, Bench, Grid, contention, value
from grape_bench.groups import Place
from grape_bench.interval import Interval
from grape_bench.outcome import Outcome
from grape_bench.ranking import SEEDS, Word
from grape_bench.table import Entry, Row
from grape_bench.trial import Course, Trial

MARKS: dict[Word, str] = {
    "faster": "▼", "slower": "▲", "smaller": "▼", "larger": "▲",
    "better": "▲", "worse": "▼", "same": "=", "unclear": "?",
}  # fmt: skip
UNLEARNED = "†"
CONTENDED_MARK = "°"
ABSENT = Entry("–", tone="muted")  # the suite does not ask for it
_MOST_ROWS = 200


def share(part: float) -> str:
    """An accuracy: .982, and 1.000."""
    return f"{part:.3f}".removeprefix("0")


def mean(interval: Interval) -> str:
    """A mean over seeds ± half of its interval: .982 ± .004."""
    return share(interval.mid) + (f" ± {share(interval.half)}" if interval.known else "")


def tested(course: Course, length: int) -> str:
    """The title of a column of scores at one length (tokens)."""
    return f"{length} (trained)" if length == course.train_length else f"{length}"


def quantity(amount: float, unit: str = "") -> str:
    """Three significant digits, never an exponent: 0.0123 ms, 12.3 ms, 1,230 ms; of MiB hundredths at most."""
    size = math.floor(math.log10(abs(amount))) if amount else 0
    most = 2 if unit == "MiB" else 6
    return f"{round(amount, 2 - size):,.{min(max(2 - size, 0), most)}f} {unit}".rstrip()


def factor(interval: Interval) -> str:
    """A ratio."""
    return _ratio(interval.mid)


def span(interval: Interval) -> str:
    """An interval in brackets, or nothing where there is none."""
    return f"[{_ratio(interval.low)}, {_ratio(interval.high)}]" if interval.known and interval.half else ""


def amount_of(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def first_of(rows: Sequence[Row]) -> tuple[tuple[Row, ...], str]:
    """The first rows of a table, and a foot that counts the others: a suite that was hardly begun has thousands."""
    left = len(rows) - _MOST_ROWS
    return tuple(rows[:_MOST_ROWS]), f"{amount_of(left, 'further row')} left out." if left > 0 else ""


def standing(outcomes: Sequence[Outcome]) -> Entry:
    """The word for cells without a figure; where they differ, the gravest."""
    for word in ("failed", "skipped", "missing"):
        for one in outcomes:
            if one.standing == word:
                return Entry(word, one.fault, word)
    return Entry("not tested", tone="muted")


def accuracy(trial: Trial, length: int, group: str) -> Entry:
    """Mean ± half of the t interval over seeds, or why there is none."""
    found = trial.accuracy(length, group)
    if found is None:
        return standing(trial.outcomes)
    text = mean(found)
    absent = Counter(one.standing for one in trial.outcomes if one.standing != "ok")
    notes = [] if found.known else ["1 seed"]
    notes += [f"{count} {word}" for word, count in absent.items()]
    if not trial.learners:
        return Entry(f"{text} {UNLEARNED}", ", ".join(notes), "unlearned")
    return Entry(text, ", ".join(notes))


def unlearned(trial: Trial) -> Entry:
    """How many seeds were trained and did not learn."""
    if not trial.records:
        return ABSENT
    return Entry(f"{trial.unlearned} of {len(trial.records)}", tone="unlearned" if trial.unlearned else "muted")


def absolute(outcome: Outcome | None, unit: str) -> str:
    """The figure of an ok cell with its unit, marked where the machine was contended."""
    amount = value(outcome)
    if amount is None:
        return ""
    contended = outcome is not None and (contention(outcome.records) or 0) > CONTENDED
    return quantity(amount, unit) + (CONTENDED_MARK if contended else "")


def cost(bench: Bench, grid: Grid, encoding: str, length: int, unit: str) -> Entry:
    """The ratio to the baseline with its interval, and the absolute figure below it; or why there is none."""
    outcome = grid.outcomes.get((encoding, length))
    if outcome is None:
        return ABSENT
    if outcome.standing != "ok":
        return standing([outcome])
    figure = absolute(outcome, unit)
    if encoding == bench.baseline:
        return Entry("1", figure, "reference")
    found = bench.against(grid, encoding, length)
    if found is None:
        return Entry(figure, "no baseline beside it" if bench.baseline else "")
    note = ", ".join(filter(None, (span(found.interval), figure)))
    return Entry(f"{MARKS[found.word]} {factor(found.interval)}", note, found.word)


def _ratio(value: float) -> str:
    return f"{value:.3f}" if value < 10 else f"{value:,.1f}"  # three decimals, so that a column lines up


def ranked(place: Place, units: str, gap: Callable[[float], str]) -> Entry:
    """The group of one encoding, with the ranks that it may hold; or how far it is from having one.

    Args:
        units: what pairs are compared by, `seeds` or `processes`; gap: how a difference of scores is written.
    """
    if place.underpowered:
        seen = "" if math.isnan(place.detectable) else f", would show {gap(place.detectable)}"
        return Entry("underpowered", f"{place.mean.n} of {SEEDS} {units}{seen}", "unclear")
    last = f" to {place.worst}" if place.worst > place.best else ""
    return Entry(f"group {place.group}", f"rank {place.best}{last}")


def score_gap(gap: float) -> str:
    """The smallest gap between scores that would show, where there is one that scores can have."""
    return f"a gap of {share(gap)}" if gap <= 1 else "no gap"
