"""What a report is made of, before anyone decides how it looks."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from grape_bench.interval import Interval

Tone = Literal[
    "plain", "muted", "reference", "ok", "skipped", "failed", "missing", "unlearned",
    "faster", "slower", "smaller", "larger", "better", "worse", "same", "unclear",
]  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """One entry of a table.

    Args:
        note: a second, quieter line; tone: what the entry says, never told by colour alone.
        behind: of the first entry of a row, what the row rests on, for a reader who asks; Markdown has no place for it.
    """

    text: str
    note: str = ""
    tone: Tone = "plain"
    behind: "Table | None" = None


Row = tuple[Entry, ...]


@dataclass(frozen=True)
class Table:
    """Columns and rows; the first column names the row.

    Args:
        id: unique in the report, of letters, digits and hyphens.
        rows: a row of a single entry is a heading over the rows below it.
        prose: columns hold sentences, to be set flush left and wrapped, and not figures.
        foot: how to read it, such as what its marks mean.
    """

    id: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    prose: bool = False
    foot: str = ""


@dataclass(frozen=True)
class Curve:
    """One line of a figure.

    Args:
        slot: its place in the palette, the same for one encoding in all figures of a report.
        low, high: ends of the interval at each point, nan where it is unknown; empty for none at all.
        doubtful: drawn dotted, such as an encoding that did not learn.
    """

    label: str
    slot: int
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    doubtful: bool = False


@dataclass(frozen=True)
class Dot:
    """One encoding as a point of a figure of costs and scores.

    Args:
        slot: as for a curve.
        x: what it costs, above 0; y: what it buys.
        beaten: another one buys as much for less, so that this one is drawn as a ring and the front passes it by.
    """

    label: str
    slot: int
    x: Interval
    y: Interval
    beaten: bool = False


@dataclass(frozen=True)
class Panel:
    """One pair of axes, with curves over lengths or with dots.

    Args:
        levels: horizontal lines with their names; mark: a vertical line with its name.
    """

    title: str
    curves: tuple[Curve, ...] = ()
    levels: tuple[tuple[str, float], ...] = ()
    mark: tuple[str, float] | None = None
    dots: tuple[Dot, ...] = ()


@dataclass(frozen=True)
class Figure:
    """One or more panels that share their axes' meaning.

    The x axis is logarithmic: to base 2 for lengths, to base 10 for the costs of dots.

    Args:
        id: unique in the report, of letters, digits and hyphens; also the name of its file.
        share: y is an accuracy, from 0 to 1; otherwise it is logarithmic.
    """

    id: str
    caption: str
    x_label: str
    y_label: str
    panels: tuple[Panel, ...]
    share: bool = False


@dataclass(frozen=True)
class Prose:
    """A paragraph of plain text."""

    text: str


@dataclass(frozen=True)
class Facts:
    """Names and values, such as the keys of an environment."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Links:
    """Places beside a report.

    Args:
        items: a name, an address relative to the report's folder, and what is there.
    """

    items: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Tally:
    """How many cells ended how."""

    counts: tuple[tuple[Tone, str, int], ...]


@dataclass(frozen=True)
class Heading:
    """A heading inside a section."""

    text: str


Piece = Prose | Facts | Links | Tally | Heading | Table | Figure


@dataclass(frozen=True)
class Section:
    """A part of a report with its own anchor."""

    id: str
    title: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Report:
    """A whole report, independent of renderers.

    Args:
        name: of the suite, which names the files.
    """

    name: str
    title: str
    about: str
    sections: tuple[Section, ...]

    def figures(self) -> Iterator[Figure]:
        for section in self.sections:
            yield from (piece for piece in section.pieces if isinstance(piece, Figure))

    def tables(self) -> Iterator[Table]:
        for section in self.sections:
            yield from (piece for piece in section.pieces if isinstance(piece, Table))
