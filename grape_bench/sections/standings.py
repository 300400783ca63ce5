"""The words and columns that all tables of a leaderboard share."""

from collections.abc import Callable
from typing import NamedTuple

from grape_bench.bench import Setting
from grape_bench.board import Board, Measure, Member
from grape_bench.cell import AccuracyCell
from grape_bench.ranking import SEEDS
from grape_bench.sections.wording import ABSENT, amount_of, ranked
from grape_bench.table import Entry
from grape_bench.trial import Course

RANKS = (
    "Group 1 is the best and all that cannot be told from it, group 2 the best of the others and all that cannot be "
    "told from that one; beside it stand the ranks that an encoding may hold. Pairs are compared {unit} by {unit}, all "
    f"of a column together with Holm's correction. Underpowered are those with too few: a rank takes {SEEDS}."
)


class Column(NamedTuple):
    """A column, what it says of a member, and the sentence below the table on how to read it."""

    title: str
    fill: Callable[[Member], Entry]
    foot: str = ""


def ranks(measure: Measure, units: str, gap: Callable[[float], str]) -> Column:
    """The groups and ranges of ranks by one measure.

    Args:
        units: what is paired, `seeds` or `processes`.
        gap: how a difference of scores is written.
    """

    def fill(member: Member) -> Entry:
        place = measure.places.get(member.name)
        return (
            ranked(place, units, gap)
            if place
            else Entry("not side by side" if member.values else ABSENT.text, tone="muted")
        )

    strange = amount_of(measure.strangers, "pair")
    foot = f"By {measure.title}, {strange} of them share fewer than {SEEDS} {units} and count as not told apart."
    return Column("its rank", fill, foot if measure.strangers else "")


def setting(board: Board) -> str:
    """What a board is about."""
    cell = board.cell
    if isinstance(cell, AccuracyCell):
        return f"{Course(cell, ())}{f', text {board.part}' if board.part else ''}"
    compiled = ", compiled" if cell.compiled else ""
    return f"{cell.scope} at {cell.length} tokens, {Setting.of(cell)}{compiled}"


def rests(*members: Member) -> str:
    """How many records an entry rests on, and the numbers of their sources: `9 records from 1, 3–5`."""
    spans: list[tuple[int, int]] = []
    for one in sorted({number for member in members for number in member.sources}):
        follows = spans and spans[-1][1] == one - 1
        spans = [*spans[:-1], (spans[-1][0], one)] if follows else [*spans, (one, one)]
    numbers = ", ".join(f"{low}" if low == high else f"{low}–{high}" for low, high in spans)
    return f"{amount_of(sum(one.records for one in members), 'record')} from {numbers}"
