"""What the tables of a leaderboard rest on, and what is not in them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from grape_bench.board import Board, Source
from grape_bench.cell import AccuracyCell
from grape_bench.sections.hardware import hardware
from grape_bench.sections.standings import setting
from grape_bench.sections.wording import amount_of, first_of
from grape_bench.table import Entry, Piece, Prose, Row, Section, Table, Tone

_TONES: dict[str, Tone] = {"failed": "failed", "skipped": "skipped", "missing": "missing"}  # the gravest first


def gaps(boards: Sequence[Board]) -> Section:
    """Every encoding without a figure somewhere: failed and skipped with the reason, and missing, which has none."""
    rows = [row for board in boards for row in (*_lost(board), *_missing(board))]
    rows.sort(key=lambda row: list(_TONES).index(row[2].tone))
    kept, foot = first_of(rows)
    caption = "Figures that are not there; missing is what no record explains"
    table = Table("gaps-table", caption, ("encoding", "where", "status", "reason"), kept, prose=True, foot=foot)
    piece = table if rows else Prose("None: whoever stands in a table has all its figures.")
    return Section("gaps", "Failed, skipped, missing", (piece,))


def sources(found: Sequence[Source], refused: Mapping[str, Sequence[str]], outdated: Mapping[str, int]) -> Section:
    """The runs that records are from, and what was left out."""
    pieces: list[Piece] = [_runs(found)]
    pieces += [
        Prose(f"{amount_of(count, 'record')} of {version} left out: this checkout has another version of it.")
        for version, count in sorted(outdated.items())
    ]
    if refused:
        rows = tuple((Entry(name), Entry(reason)) for name, reasons in refused.items() for reason in reasons)
        pieces.append(Table("refused-table", "Refused bundles", ("bundle", "reason"), rows, prose=True))
    return Section("sources", "Sources", tuple(pieces))


def _runs(found: Sequence[Source]) -> Table:
    columns = ("number", "from", "machine", "run", "commit", "grape-bench", "records that count")
    rows = tuple(tuple(map(Entry, _run(one))) for one in found)
    foot = "A run of which none counts chose learning rates, or was measured again since, or stands in two places."
    return Table("sources-table", "Runs by the numbers that entries name", columns, rows, prose=True, foot=foot)


def _run(one: Source) -> tuple[str, ...]:
    commit = (one.commit or "unknown")[:10] + (" with changes" if one.dirty else "")
    return str(one.number), one.origin, one.machine, one.run, commit, one.package or "unknown", f"{one.records:,}"


def _lost(board: Board) -> Iterator[Row]:
    """Those that were tried; of a cost that other processes of the run did measure nothing is lost."""
    for member in board.members:
        alike: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
        for one in member.lost if isinstance(board.cell, AccuracyCell) or not member.values else ():
            alike[one.status, one.fault, one.message].append(one.unit)
        for (status, fault, message), units in alike.items():
            word = Entry(status, fault, _TONES.get(status, "failed"))
            yield Entry(member.name, _seeds(board, units)), _where(board), word, Entry(message)


def _missing(board: Board) -> Iterator[Row]:
    word = Entry("missing", tone="missing")
    for name in board.missing:
        yield Entry(name), _where(board), word, Entry("never tried at this setting, though at others of the suite")
    for member in board.members if isinstance(board.cell, AccuracyCell) else ():
        if left := sorted(board.units - set(member.tried)):
            yield Entry(member.name, _seeds(board, left)), _where(board), word, Entry("never tried, as others were")


def _seeds(board: Board, units: Sequence[int]) -> str:
    return f"seed {', '.join(map(str, units))}" if isinstance(board.cell, AccuracyCell) else ""


def _where(board: Board) -> Entry:
    if isinstance(board.cell, AccuracyCell):
        return Entry(setting(board))
    return Entry(f"{board.cell.metric}, {setting(board)}", f"{board.part} on {hardware(board.hardware)}")
