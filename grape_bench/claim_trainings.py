"""Claims about trainings: what seeds say of encodings in accuracy or in loss."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from grape_bench.evidence import Evidence, Word, edges, judge, pairs, said
from grape_bench.interval import enough, joint
from grape_bench.ranking import SEEDS, Comparison, Scores, by_seed, compare_scores, gaps, losses, scores
from grape_bench.suite import Suite, expand
from grape_bench.suite_claim import Claim
from grape_bench.trial import Course, Trial
from grape_bench.view import View

_SEEDS = 100  # so many are not trained for one claim


@dataclass(frozen=True)
class _Side:
    """An encoding in one setting, or its gain over another one there.

    Args:
        entry: the name of its setting, where the other side has another.
    """

    course: Course
    encoding: str
    over: str | None = None
    entry: str | None = None

    def __str__(self) -> str:
        return self.encoding + (f" over {self.over}" if self.over else "") + (f" ({self.entry})" if self.entry else "")

    @property
    def trials(self) -> tuple[Trial, ...]:
        return tuple(self.course.trial(one) for one in (self.encoding, self.over) if one)


def evidence(claim: Claim, view: View) -> tuple[Evidence, ...]:
    """Each pair in each setting that the claim speaks of."""
    wanted = [pair for own, other in _settings(claim, view) for pair in _sides(claim, own, other)]
    return tuple(_pair(claim, a, b, len(wanted)) for a, b in wanted)


def _settings(claim: Claim, view: View) -> Iterator[tuple[Course, Course]]:
    """That of the encodings beside that of what they are held against."""
    names = _names(view.suite)
    told = [one for one in view.courses if claim.task in (None, one.cell.task)]
    own = [one for one in told if claim.entry in (None, *names.get(one.cell.setting, ()))]
    if claim.against_entry is None:
        found: Iterable[tuple[Course, Course]] = ((one, one) for one in own)
    else:
        others = [one for one in told if claim.against_entry in names.get(one.cell.setting, ())]
        found = (pair for pair in product(own, others) if pair[0].cell.dtype == pair[1].cell.dtype)
    for one, other in found:
        has_all = {*claim.encodings} <= {*one.encodings} and {*claim.against} <= {*other.encodings}
        length = claim.length(one.train_length)
        if has_all and (claim.metric == "loss" or all(length in course.lengths for course in (one, other))):
            yield one, other


def _names(suite: Suite) -> Mapping[str, set[str]]:
    """Names of entries by the setting of their cells."""
    found: dict[str, set[str]] = {}
    for grid in suite.accuracy:
        for cell in expand(suite.model_copy(update={"cost": (), "accuracy": (grid,)})):
            found.setdefault(cell.setting, set()).update({grid.name} if grid.name else ())
    return found


def _sides(claim: Claim, own: Course, other: Course) -> Iterator[tuple[_Side, _Side]]:
    """Who is to be above whom, or as whom."""
    before = dict(zip(claim.encodings[1:], claim.encodings, strict=False)) if claim.relation == "diminishing" else {}
    places = [(own, claim.entry), (other, claim.against_entry)]
    if claim.relation == "below":
        places.reverse()
    for pair in pairs(claim):
        a, b = (
            _Side(course, one, before.get(one), entry if claim.against_entry else None)
            for one, (course, entry) in zip(pair, places, strict=True)
        )
        yield a, b


def _pair(claim: Claim, a: _Side, b: _Side, family: int) -> Evidence:
    what = f"{said(claim, str(a), str(b))} in {_measured(claim, a.course)}"
    first, second = (_values(claim, one) for one in (a, b))
    shared = first.keys() & second.keys()
    if not shared:
        return Evidence(what, "undecided", remark=f"{a} and {b} share no seed with such a score")
    trials = (*a.trials, *b.trials)
    few = len(shared) < SEEDS
    comparison = compare_scores(first, second, family=family)
    word: Word = "undecided" if few else judge(claim, comparison)
    remarks = [f"{len(shared)} of {SEEDS} seeds"] if few else []
    remarks += [_unlearned(one) for one in trials if one.unlearned and claim.metric == "accuracy"]
    remarks += [_lacking(claim, comparison, gaps(first, second), family)] if word == "undecided" and not few else []
    ids = dict.fromkeys(by_seed(one.records)[seed].id for seed in sorted(shared) for one in trials)
    return Evidence(what, word, comparison, tuple(ids), ", ".join(dict.fromkeys(remarks)))


def _lacking(claim: Claim, comparison: Comparison, found: Sequence[float], family: int) -> str:
    """How many seeds would decide a pair, were they like those that there are."""
    gap = min(abs(comparison.interval.mid - edge) for edge in edges(claim, difference=True))
    count = enough(found, gap, joint(family), most=_SEEDS)
    return f"some {count} seeds would decide it" if count else f"{_SEEDS} seeds would not decide it"


def _measured(claim: Claim, course: Course) -> str:
    entry = f" ({claim.entry})" if claim.entry and not claim.against_entry else ""
    if claim.metric == "loss":
        return f"loss of {course.task}{entry} at step {claim.step or course.cell.training.steps}"
    return f"{claim.group or course.headline} of {course.task}{entry} at {claim.length(course.train_length):g}"


def _values(claim: Claim, side: _Side) -> Scores:
    """What is compared, seed by seed."""
    values = [_of(claim, side.course, trial) for trial in side.trials]
    if len(values) == 1:
        return values[0]
    one, over = values
    return {seed: one[seed] - over[seed] for seed in one.keys() & over.keys()}


def _of(claim: Claim, course: Course, trial: Trial) -> Scores:
    if claim.metric == "loss":  # of all: who learns slowly is what is asked
        return losses(trial.records, claim.step)
    return scores(trial.counted, int(claim.length(course.train_length)), claim.group or course.headline)


def _unlearned(trial: Trial) -> str:
    return f"{trial.encoding} did not learn in {trial.unlearned} of {len(trial.records)}"
