"""A report as Markdown, which GitHub shows, with figures in files beside it."""

import html
import re

from tabulate import tabulate

from grape_bench.printable import on_one_line
from grape_bench.renderers import Renderer
from grape_bench.table import Entry, Facts, Figure, Heading, Links, Piece, Prose, Report, Section, Table, Tally


class Markdown(Renderer):
    """GitHub's Markdown; figure `a` of suite `s` is the file `s/a.svg`."""

    suffix = ".md"

    def render(self, report: Report) -> str:
        parts = [f"# {escape(report.title)}"]
        parts += [escape(report.about.strip())] if report.about.strip() else []
        parts += [_section(section, report.name) for section in report.sections]
        return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    safe = html.escape(on_one_line(text), quote=False)
    safe = re.sub(r"([\\`*\[\]|~$])", r"\\\1", safe)
    safe = re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\_", safe)  # between letters it is no emphasis, and stays legible
    return re.sub(r"^(\d*)([#+.)-])(?=\s)", r"\1\\\2", safe)


def _section(section: Section, name: str) -> str:
    return "\n\n".join([f"## {escape(section.title)}", *(_piece(piece, name) for piece in section.pieces)])


def _piece(piece: Piece, name: str) -> str:
    match piece:
        case Prose(text):
            return escape(text)
        case Heading(text):
            return f"### {escape(text)}"
        case Facts(items):
            return "\n".join(f"- **{escape(key)}**: {escape(value)}" for key, value in items)
        case Links(items):
            return "\n".join(f"- [{escape(name)}]({address}): {escape(what)}" for name, address, what in items)
        case Tally(counts):
            return ", ".join(f"**{count}** {escape(word)}" for _, word, count in counts)
        case Figure(id=anchor, caption=caption):
            return f"![{escape(caption)}]({name}/{anchor}.svg)\n\n*{escape(caption)}*"
        case Table():
            return _table(piece)


def _table(table: Table) -> str:
    rows = [_row(row, len(table.columns)) for row in table.rows]
    align = ["left"] + ["left" if table.prose else "right"] * (len(table.columns) - 1)
    columns = [escape(column) for column in table.columns]
    text = tabulate(rows, columns, tablefmt="pipe", colalign=align if rows else None, disable_numparse=True)
    return "\n\n".join(filter(None, [f"**{escape(table.caption)}**", text, escape(table.foot)]))


def _row(row: tuple[Entry, ...], columns: int) -> list[str]:
    if len(row) == 1:
        return [f"**{escape(row[0].text)}**", *[""] * (columns - 1)]
    return [_entry(entry) for entry in row]


def _entry(entry: Entry) -> str:
    return "<br>".join(escape(text) for text in (entry.text, entry.note) if text)


PLUGIN = Markdown
