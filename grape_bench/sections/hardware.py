"""Costs of many, each kind of hardware for itself."""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence

from grape_bench.board import Board, Member
from grape_bench.cell import CostCell
from grape_bench.environment import COMPARED
from grape_bench.interval import mean_interval
from grape_bench.sections.standings import RANKS, Column, ranks, rests, setting
from grape_bench.sections.wording import ABSENT, quantity
from grape_bench.table import Entry, Facts, Heading, Piece, Prose, Section, Table

_READING = (
    f"Costs are compared only where {', '.join(COMPARED)} are equal, and within one suite, whose encodings are timed "
    "in the same processes. A time is the geometric mean over processes of their medians, with its 95 % t interval; a "
    "peak of memory does not scatter and has no rank. One setting stands for all of a metric: that with the most "
    "encodings, of these the longest."
)
_ORDER = ("train_step_ms", "forward_backward_ms", "forward_ms")  # of these the first that is there orders the rows


def cost(boards: Sequence[Board]) -> Section | None:
    """For each kind of hardware a table for each suite and number format."""
    found: defaultdict[tuple[str, ...], list[Board]] = defaultdict(list)
    for board in boards:
        found[board.hardware].append(board)
    pieces = [piece for number, each in enumerate(found.values(), 1) for piece in _hardware(each, f"hardware-{number}")]
    reading = Prose(f"{_READING} {RANKS.format(unit='process')}")
    return Section("cost", "Cost", (reading, *pieces)) if pieces else None


def hardware(values: tuple[str, ...]) -> str:
    """A kind of hardware in a few words."""
    known = dict(zip(COMPARED, values, strict=True))
    device = known["cpu"] if known["device"] == "cpu" else known["device"]
    cuda = f", CUDA {known['cuda']}" if known["cuda"] else ""
    threads = f", {known['threads']} threads" if known["threads"] != "1" else ""
    return f"{device}, torch {known['torch']}{cuda}{threads}"


def _hardware(boards: Sequence[Board], anchor: str) -> Iterator[Piece]:
    values = boards[0].hardware
    yield Heading(hardware(values))
    yield Facts(tuple((key, value or "none") for key, value in zip(COMPARED, values, strict=True)))
    tables: defaultdict[tuple[str, str], list[Board]] = defaultdict(list)
    for board in boards:
        tables[board.part, board.cell.dtype].append(board)
    for number, ((suite, dtype), found) in enumerate(sorted(tables.items()), 1):
        yield _table(found, f"{suite}, {dtype}, on {hardware(values)}", f"{anchor}-{number}")


def _table(boards: Sequence[Board], caption: str, anchor: str) -> Table:
    ordered = sorted(boards, key=_place)
    filled = [(board, {one.name: one for one in board.members}, list(_columns(board))) for board in ordered]
    names = {name for board, members, _ in filled for name in (*members, *board.missing)}
    order = sorted(names, key=lambda name: (*(_figure(members.get(name)) for _, members, _ in filled), name))
    rows = tuple(
        (Entry(name), *(_entry(board, members, column, name) for board, members, each in filled for column in each))
        for name in order
    )
    columns = [column for _, _, each in filled for column in each]
    titles = ("encoding", *(column.title for column in columns))
    return Table(anchor, caption, titles, rows, foot=" ".join(column.foot for column in columns if column.foot))


def _place(board: Board) -> tuple[object, ...]:
    metric = board.cell.metric
    return (_ORDER.index(metric) if metric in _ORDER else len(_ORDER), metric, setting(board))


def _figure(member: Member | None) -> float:
    """The geometric mean over processes, infinite where there is none."""
    if member is None or not member.values:
        return math.inf
    return math.exp(-statistics.fmean(member.speed.values())) if member.speed else 0.0


def _entry(board: Board, members: dict[str, Member], column: Column, name: str) -> Entry:
    if name in members:
        return column.fill(members[name])
    return Entry("missing", tone="missing") if name in board.missing else ABSENT


def _columns(board: Board) -> Iterator[Column]:
    """The figure and, for a time, the rank."""
    assert isinstance(board.cell, CostCell)
    unit = "MiB" if board.cell.metric.endswith("_mib") else "ms"

    def fill(member: Member) -> Entry:
        if not member.values:
            last = member.lost[-1]
            return Entry(last.status, last.fault, "failed" if last.status == "failed" else "skipped")
        return Entry(quantity(_figure(member), unit), ", ".join(filter(None, (_span(member, unit), rests(member)))))

    title = f"{board.cell.scope} {board.cell.metric}"
    yield Column(title, fill, f"{title}: {setting(board)}.")
    if unit == "ms":
        [measure] = board.measures(0)
        yield ranks(measure, "processes", lambda gap: f"{100 * math.expm1(gap):.0f} %" if gap < 1 else "no gap")


def _span(member: Member, unit: str) -> str:
    """The t interval of a time over processes."""
    if unit == "MiB" or len(member.speed) < 2:
        return ""
    found = mean_interval(list(member.speed.values()))
    return f"[{quantity(math.exp(-found.high))}, {quantity(math.exp(-found.low))}]"
