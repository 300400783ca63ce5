"""Who can be told from whom: groups and ranges of ranks, as trained and on longer inputs."""

import math
import statistics
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from grape_bench.extrapolation import areas, beyond, normalised
from grape_bench.groups import Place, Ranking, rank
from grape_bench.interval import mean_interval
from grape_bench.pareto import beaten
from grape_bench.ranking import SCORE_MARGIN, SEEDS, Scores, compare_scores, gaps
from grape_bench.sections.front import front
from grape_bench.sections.offers import offers, priced
from grape_bench.sections.wording import ABSENT, MARKS, mean, ranked, score_gap, share, standing, tested
from grape_bench.table import Entry, Heading, Piece, Prose, Row, Section, Table
from grape_bench.trial import Course, Trial
from grape_bench.view import View

_READING = (
    "Scores are normalised: 0 is what a reader without positions can reach, 1 a perfect one. They are means over the "
    "seeds that learned, ± half of the 95 % t interval. The area is the mean score from the training length up, each "
    "doubling weighing the same. Group 1 is the best and all that cannot be told from it, group 2 the best of the "
    "others and all that cannot be told from that one. Beside the group stand the ranks that an encoding may hold. "
    "Pairs are compared seed by seed, all of one column together with Holm's correction: the chance of even one false "
    f"split is 5 %. An encoding with fewer than {SEEDS} seeds is underpowered and gets no rank."
)


class Column(NamedTuple):
    """A column, and the sentence below the table that says how to read it."""

    title: str
    fill: Callable[[str], Entry]
    foot: str = ""


class Measure(NamedTuple):
    """One figure that encodings are ranked by, and what the seeds say of it.

    Args:
        scores: those of the encodings that learned.
    """

    title: str
    scores: Mapping[str, Scores]
    ranking: Ranking

    @property
    def places(self) -> dict[str, Place]:
        return {one.name: one for one in self.ranking.places}


def ranking(view: View) -> Section | None:
    """For each task a table of ranks and one of normalised scores by length."""
    pieces = [
        piece for number, course in enumerate(view.courses, 1) for piece in _course(view, course, f"task-{number}")
    ]
    return Section("ranking", "Ranking", (Prose(_READING), *pieces)) if pieces else None


def _course(view: View, course: Course, anchor: str) -> Iterator[Piece]:
    yield Heading(f"Ranking in {course.cell.task}, trained at {course.train_length} tokens")
    measures = _measures(course)
    last = measures[-1]
    yield _ranks(view, course, measures, f"{anchor}-ranking")
    figure = front(view, last.title, last.ranking, f"{anchor}-front")
    if figure:
        yield figure
    if len(measures) > 1 and last.scores:
        yield _lengths(course, last, f"{anchor}-extrapolation")


def _measures(course: Course) -> tuple[Measure, ...]:
    """The score at the training length, and the area where longer inputs were tested; the last one orders the rows."""
    length, lengths = course.train_length, beyond(course.lengths, course.train_length)
    made = [_measure(course, f"score at {length}", lambda trial: normalised(trial, length))]
    made += [_measure(course, f"area up to {lengths[-1]}", areas)] if lengths else []
    return tuple(made)


def _measure(course: Course, title: str, of: Callable[[Trial], Scores]) -> Measure:
    found = {trial.encoding: of(trial) for trial in course.trials}
    scores = {name: each for name, each in found.items() if each}
    return Measure(title, scores, rank(scores))


def _ranks(view: View, course: Course, measures: tuple[Measure, ...], anchor: str) -> Table:
    last = measures[-1]
    columns = [column for one in measures for column in (_score(one), _rank(one))]
    columns += [*_against(view, last), *_front(view, last)]
    ranked = [place.name for place in last.ranking.places]
    rows = [_row(course, name, columns) for name in (*ranked, *(one for one in course.encodings if one not in ranked))]
    titles = ("encoding", *(one.title for one in columns))
    foot = " ".join(one.foot for one in columns if one.foot)
    return Table(anchor, f"Ranks in {course.headline}", titles, tuple(rows), foot=foot)


def _row(course: Course, name: str, columns: list[Column]) -> Row:
    trial = course.trial(name)
    if trial.learners:
        return (Entry(name), *(one.fill(name) for one in columns))
    why = Entry("did not learn", tone="unlearned") if trial.records else standing(trial.outcomes)
    return (Entry(name), why, *[ABSENT] * (len(columns) - 1))


def _score(measure: Measure) -> Column:
    places = measure.places
    return Column(measure.title, lambda name: Entry(mean(places[name].mean)) if name in places else ABSENT)


def _rank(measure: Measure) -> Column:
    places = measure.places
    sizes = [one.detectable for one in places.values() if one.group and not math.isnan(one.detectable)]
    seen = f"a gap of {share(statistics.median(sizes))} four times in five" if sizes else ""
    return Column(
        "its rank",
        lambda name: ranked(places[name], "seeds", score_gap) if name in places else ABSENT,
        f"In the {measure.title} these seeds would show {seen}." if seen else "",
    )


def _against(view: View, measure: Measure) -> Iterator[Column]:
    """The gap to the baseline, of those that have a rank beside it."""
    baseline = view.suite.baseline or ""
    ranked = [one.name for one in measure.ranking.places if not one.underpowered]
    if baseline not in ranked:
        return

    def fill(name: str) -> Entry:
        if name == baseline:
            return Entry("0", tone="reference")
        a, b = measure.scores.get(name, {}), measure.scores[baseline]
        if len(gaps(a, b)) < SEEDS:
            return ABSENT
        found = compare_scores(a, b, family=len(ranked) - 1)
        low, mid, high = (f"{one:+.3f}" for one in (found.interval.low, found.interval.mid, found.interval.high))
        return Entry(f"{MARKS[found.word]} {mid}", f"{found.word} [{low}, {high}]", found.word)

    what = f"{measure.title} less that of {baseline}"
    yield Column(what, fill, f"Better, worse, same or unclear: the {what} against a margin of {share(SCORE_MARGIN)}.")


def _front(view: View, measure: Measure) -> Iterator[Column]:
    """Whether another one buys more for less."""
    scores = {one.name: one.mean.mid for one in measure.ranking.places if not one.underpowered}
    offered = offers(view, scores)
    if not offered:
        return
    lost = beaten(offered, measure.ranking.apart)
    entries = {one.name: Entry("on the front") for one in offered}
    entries |= {name: Entry("beaten", f"by {winner}", "worse") for name, winner in lost.items()}
    yield Column("Pareto", lambda name: entries.get(name, ABSENT), f"Pareto: the {measure.title}, {priced(view)}.")


def _lengths(course: Course, measure: Measure, anchor: str) -> Table:
    columns = ("encoding", *(tested(course, length) for length in course.lengths))
    rows = [
        (Entry(place.name), *(_at(course.trial(place.name), length) for length in course.lengths))
        for place in measure.ranking.places
    ]
    caption = f"Normalised scores in {course.headline} of those that learned, by test length in tokens"
    return Table(anchor, caption, columns, tuple(rows))


def _at(trial: Trial, length: int) -> Entry:
    found = normalised(trial, length)
    return Entry(mean(mean_interval(list(found.values())))) if found else ABSENT
