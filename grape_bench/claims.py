"""A suite's claims against its records: supported, refuted or undecided."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from typing import Literal, get_args

from tabulate import tabulate

from grape_bench.bench import Bench, Grid
from grape_bench.compare import figure
from grape_bench.ranking import (
    RATIO_MARGIN,
    SCORE_MARGIN,
    SEEDS,
    Comparison,
    by_seed,
    compare_scores,
    ratio_band,
    scores,
)
from grape_bench.suite_claim import Claim
from grape_bench.trial import Course, Trial
from grape_bench.view import View

Pair = tuple[str, str]
Word = Literal["supported", "refuted", "undecided"]
WORDS: tuple[Word, ...] = get_args(Word)


@dataclass(frozen=True)
class Evidence:
    """One pair of encodings in one setting, as a claim has it.

    Args:
        what: the pair and its setting in words.
        word: what the pair alone says.
        comparison: None where there is nothing to compare.
        records: ids of the cells whose records it rests on.
        remark: what a reader has to know beside the interval, such as why there is none.
    """

    what: str
    word: Word
    comparison: Comparison | None = None
    records: tuple[str, ...] = ()
    remark: str = ""


@dataclass(frozen=True)
class Verdict:
    """What the records say of a claim.

    Args:
        where: the machine that a cost was measured on; empty for an accuracy, which pools all.
    """

    claim: Claim
    evidence: tuple[Evidence, ...]
    where: str = ""

    @property
    def word(self) -> Word:
        """A claim stands if all its pairs do, and falls with one of them."""
        words = {one.word for one in self.evidence}
        if "refuted" in words:
            return "refuted"
        return "supported" if words == {"supported"} else "undecided"

    @property
    def name(self) -> str:
        return self.claim.id + (f" on {self.where}" if self.where else "")

    @property
    def records(self) -> tuple[str, ...]:
        """Ids of the cells that it rests on."""
        return tuple(dict.fromkeys(one for each in self.evidence for one in each.records))


def verdicts(view: View) -> tuple[Verdict, ...]:
    """Each claim of the suite in its order; one about cost once for each machine.

    A pair of accuracies needs five seeds in common, and all intervals of a claim hold together at 95 %.
    """
    found: list[Verdict] = []
    for claim in view.suite.claims:
        if claim.metric == "accuracy":
            found.append(Verdict(claim, _accuracies(claim, view.courses)))
        else:
            found += [Verdict(claim, _costs(claim, bench), _where(bench)) for bench in view.benches]
    return tuple(found)


def text(found: Sequence[Verdict]) -> str:
    """A table of verdicts and pairs, the sentences below it with the records they rest on, and a count."""
    rows = [row for one in found for row in _rows(one)]
    columns = ["claim", "verdict", "pair", "difference or ratio", "it says", "remarks"]
    parts = [tabulate(rows, columns, disable_numparse=True)]
    for one in found:
        source = f" ({one.claim.source})" if one.claim.source else ""
        parts.append(f"{one.name}: {one.claim.says}{source}\n  rests on: {' '.join(one.records) or 'no records'}")
    counts = Counter(one.word for one in found)
    return "\n\n".join([*parts, ", ".join(f"{counts[word]} {word}" for word in WORDS)])


def _rows(verdict: Verdict) -> Iterator[list[str]]:
    heads = [[verdict.name, verdict.word], *[["", ""]] * len(verdict.evidence)]
    for head, one in zip(heads, verdict.evidence, strict=False):
        yield [*head, one.what, figure(one.comparison) if one.comparison else "–", one.word, one.remark]


def pairs(claim: Claim) -> tuple[Pair, ...]:
    """Who is to be above whom; for `same`, who is to be as whom."""
    match claim.relation:
        case "order":
            return tuple((later, earlier) for earlier, later in pairwise(claim.encodings))
        case "below":
            return tuple(product(claim.against, claim.encodings))
        case "same" if not claim.against:
            return tuple(combinations(claim.encodings, 2))
        case _:
            return tuple(product(claim.encodings, claim.against))


def judge(claim: Claim, comparison: Comparison) -> Word:
    """What one pair says: whether its interval is wholly where the claim has it, or wholly where it has not."""
    difference, interval = comparison.difference, comparison.interval
    usual = 0.0 if claim.relation != "same" else SCORE_MARGIN if difference else RATIO_MARGIN
    margin = usual if claim.margin is None else claim.margin
    low, high = (-margin, margin) if difference else ratio_band(margin)
    if not interval.known:
        return "undecided"
    if claim.relation != "same":
        return "supported" if interval.low > high else "refuted" if interval.high <= high else "undecided"
    if low <= interval.low and interval.high <= high:
        return "supported"
    return "refuted" if interval.high < low or interval.low > high else "undecided"


def _accuracies(claim: Claim, courses: Iterable[Course]) -> tuple[Evidence, ...]:
    told = [one for one in courses if claim.task in (None, one.cell.task) and _has_all(claim, one.encodings)]
    tested = [one for one in told if claim.length(one.train_length) in one.lengths]
    wanted = list(product(tested, pairs(claim)))
    return tuple(_accuracy(claim, course, pair, len(wanted)) for course, pair in wanted)


def _accuracy(claim: Claim, course: Course, pair: Pair, family: int) -> Evidence:
    length, group = int(claim.length(course.train_length)), claim.group or course.headline
    sides = [course.trial(one) for one in pair]
    a, b = (scores(one.counted, length, group) for one in sides)
    what = f"{_said(claim, pair)} in {group} of {course.task} at {length}"
    shared = a.keys() & b.keys()
    if not shared:
        return Evidence(what, "undecided", remark=f"{' and '.join(pair)} share no seed with such a score")
    few = len(shared) < SEEDS
    remarks = [f"{len(shared)} of {SEEDS} seeds"] if few else []
    remarks += [_unlearned(one) for one in sides if one.unlearned]
    ids = tuple(by_seed(one.counted)[seed].id for seed in sorted(shared) for one in sides)
    comparison = compare_scores(a, b, family=family)
    return Evidence(what, "undecided" if few else judge(claim, comparison), comparison, ids, ", ".join(remarks))


def _unlearned(trial: Trial) -> str:
    return f"{trial.encoding} did not learn in {trial.unlearned} of {len(trial.records)}"


def _costs(claim: Claim, bench: Bench) -> tuple[Evidence, ...]:
    places = [
        (grid, length)
        for grid in bench.grids
        for length in grid.lengths
        if _speaks_of(claim, grid, length)
        if _has_all(claim, (one for one, at in grid.outcomes if at == length))
    ]
    wanted = list(product(places, pairs(claim)))
    return tuple(_cost(claim, bench, place, pair, len(wanted)) for place, pair in wanted)


def _cost(claim: Claim, bench: Bench, place: tuple[Grid, int], pair: Pair, family: int) -> Evidence:
    grid, length = place
    several = len({one.setting for one in bench.grids if one.metric == grid.metric and one.scope == grid.scope}) > 1
    setting = f" ({grid.setting})" if several else ""
    what = f"{_said(claim, pair)} in {grid.metric} of the {grid.scope} at {length}{setting}"
    sides = [grid.outcomes[one, length] for one in pair]
    comparison = bench.against(grid, pair[0], length, pair[1], family=family)
    if comparison is None:
        absent = [f"{one.cell.encoding} is {one.standing}" for one in sides if one.standing != "ok"]
        return Evidence(what, "undecided", remark=", ".join(absent) or "not measured side by side")
    return Evidence(what, judge(claim, comparison), comparison, tuple(one.cell.id for one in sides))


def _said(claim: Claim, pair: Pair) -> str:
    return f"{pair[0]} {'the same as' if claim.relation == 'same' else 'above'} {pair[1]}"


def _speaks_of(claim: Claim, grid: Grid, length: int) -> bool:
    found = (grid.scope, grid.setting.backend, grid.setting.heads, grid.setting.dtype, length)
    wanted = (claim.scope, claim.backend, claim.heads, claim.dtype, claim.at)
    return grid.metric == claim.metric and all(a in (None, b) for a, b in zip(wanted, found, strict=True))


def _has_all(claim: Claim, encodings: Iterable[str]) -> bool:
    return {*claim.encodings, *claim.against} <= {*encodings}


def _where(bench: Bench) -> str:
    return bench.environment.machine if bench.environment else ""
