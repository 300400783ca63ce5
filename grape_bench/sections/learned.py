"""Accuracy of many, pooled: who learned and how well, and apart from these who did not."""

import math
import statistics
from collections import Counter
from collections.abc import Sequence

from grape_bench.board import Board, Measure, Member
from grape_bench.interval import mean_interval
from grape_bench.score import LEARNED_LOSS
from grape_bench.sections.standings import RANKS, Column, ranks, rests, setting
from grape_bench.sections.wording import ABSENT, amount_of, mean, score_gap
from grape_bench.table import Entry, Prose, Row, Section, Table

_READING = (
    "Scores are normalised: 0 is what a reader without positions can reach, 1 a perfect one. They are means over the "
    "seeds that learned, ± half of the 95 % t interval, over all machines and people. The same seed on another machine "
    "is a replicate and no further sample: replicates are averaged first. The area is the mean score from the training "
    "length up, each doubling weighing the same. In all suites a seed has learned from a score of {threshold:g} at the "
    "training length."
)
_LOSSES = (
    "Of a language model the score is the share that it saves of a unigram's loss, from which it has learned at "
    f"{LEARNED_LOSS:g}; each text has a table of its own."
)


def accuracy(boards: Sequence[Board], threshold: float) -> Section | None:
    """A table for each task and recipe, of those that learned."""
    tables = [_table(board, threshold, f"accuracy-{number}") for number, board in enumerate(boards, 1)]
    found = [one for one in tables if one.rows]
    reading = Prose(f"{_READING.format(threshold=threshold)} {RANKS.format(unit='seed')}")
    losses = [Prose(_LOSSES)] if any(one.part for one in boards) else []
    return Section("accuracy", "Accuracy", (reading, *losses, *found)) if found else None


def unlearned(boards: Sequence[Board], threshold: float) -> Section | None:
    """Those of which no seed learned, together for each task and recipe."""
    rows = tuple(
        _together(board, lost)
        for board in boards
        if (lost := [one for one in board.members if one.values and not one.learned(board.bar(threshold))])
    )
    columns = ("task", "encodings", "scores", "rests on")
    table = Table("unlearned-table", "Trained, and no seed learned", columns, rows, prose=True)
    return Section("unlearned", "Did not learn", (table,)) if rows else None


def _table(board: Board, threshold: float, anchor: str) -> Table:
    measures = board.measures(threshold)
    columns = [column for one in measures for column in (_score(one), ranks(one, "seeds", score_gap))]
    columns += [_seeds(board, threshold), Column("rests on", lambda one: Entry(rests(one)))]
    found = [one for one in board.members if one.learned(board.bar(threshold))]
    found.sort(key=lambda member: [_lowness(one, member) for one in reversed(measures)])
    rows = tuple((Entry(member.name), *(column.fill(member) for column in columns)) for member in found)
    foot = " ".join(column.foot for column in columns if column.foot)
    return Table(anchor, setting(board), ("encoding", *(column.title for column in columns)), rows, foot=foot)


def _score(measure: Measure) -> Column:
    def fill(member: Member) -> Entry:
        found = measure.scores.get(member.name)
        return Entry(mean(mean_interval(list(found.values())))) if found else ABSENT

    return Column(measure.title, fill)


def _seeds(board: Board, threshold: float) -> Column:
    """Seeds that learned, of all that anyone tried, and what became of the others."""

    def fill(member: Member) -> Entry:
        learned = len(member.learned(board.bar(threshold)))
        counts = Counter(one.status for one in member.lost)
        counts.update({"missing": len(board.units) - len(member.tried), "did not learn": len(member.values) - learned})
        note = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
        return Entry(f"{learned} of {len(board.units)}", note, "unclear" if note else "plain")

    return Column("seeds", fill)


def _lowness(measure: Measure, member: Member) -> float:
    """What orders rows: the best first, and last who has no such score."""
    found = measure.scores.get(member.name)
    return -statistics.fmean(found.values()) if found else math.inf


def _together(board: Board, members: Sequence[Member]) -> Row:
    scores = [score for one in members for score in one.values.values()]
    low, high = (round(end(scores), 2) + 0.0 for end in (min, max))  # + 0.0: never -0.00
    span = f"{low:.2f} to {high:.2f}" if low < high else f"{low:.2f}"
    names = Entry("; ".join(one.name for one in members))
    return (
        Entry(setting(board)),
        names,
        Entry(f"{span} over {amount_of(len(scores), 'training')}"),
        Entry(rests(*members)),
    )
