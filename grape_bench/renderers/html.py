"""A report as one page of HTML that needs nothing beside it."""

import html
from collections.abc import Sequence
from pathlib import Path
from string import Template

from tabulate import Line, TableFormat, tabulate

from grape_bench.plots import inline
from grape_bench.renderers import Renderer
from grape_bench.table import Entry, Facts, Figure, Heading, Links, Piece, Prose, Report, Section, Table, Tally


class Html(Renderer):
    """One HTML5 file with its style and figures inside: no script, no network."""

    suffix = ".html"

    def render(self, report: Report) -> str:
        folder = Path(__file__).parent
        page = Template((folder / "_page.html").read_text(encoding="utf-8"))
        return page.substitute(
            style=(folder / "_page.css").read_text(encoding="utf-8"),
            title=_text(report.title),
            about=f"<p>{_text(report.about)}</p>" if report.about.strip() else "",
            contents="\n".join(_link(section) for section in report.sections),
            sections="\n".join(_section(section) for section in report.sections),
        )


def _text(text: str) -> str:
    """Escaped for element content and attributes; control characters, which HTML forbids, are shown as �."""
    printable = "".join(one if one.isprintable() or one.isspace() else "\ufffd" for one in text)
    return html.escape(printable).replace(" %", "&nbsp;%")


def _link(section: Section) -> str:
    return f'<li><a href="#{section.id}">{_text(section.title)}</a></li>'


def _section(section: Section) -> str:
    inside = "\n".join(_piece(piece) for piece in section.pieces)
    title = f'<h2 id="{section.id}-title">{_text(section.title)}</h2>'
    return f'<section id="{section.id}" aria-labelledby="{section.id}-title">\n{title}\n{inside}\n</section>'


def _piece(piece: Piece) -> str:
    match piece:
        case Prose(text):
            return f"<p>{_text(text)}</p>"
        case Heading(text):
            return f"<h3>{_text(text)}</h3>"
        case Facts(items):
            pairs = (f"<div><dt>{_text(key)}</dt><dd>{_text(value)}</dd></div>" for key, value in items)
            return f'<dl class="facts">{"".join(pairs)}</dl>'
        case Links(items):
            each = (f'<li><a href="{_text(to)}">{_text(name)}</a>: {_text(what)}</li>' for name, to, what in items)
            return f"<ul>{''.join(each)}</ul>"
        case Tally(counts):
            each = (f'<li class="{tone}"><b>{count}</b> {_text(word)}</li>' for tone, word, count in counts)
            return f'<ul class="tally">{"".join(each)}</ul>'
        case Figure(id=anchor, caption=caption):
            drawing = f'<div class="scroll" tabindex="0">{inline(piece)}</div>'
            return f'<figure id="{anchor}">\n{drawing}\n<figcaption>{_text(caption)}</figcaption>\n</figure>'
        case Table():
            return _table(piece)


def _table(table: Table) -> str:
    rows = [[_entry(entry, table.prose) for entry in row] for row in table.rows]
    columns = [_head(column, first=index == 0) for index, column in enumerate(table.columns)]
    text = tabulate(rows, columns, tablefmt=_FORMAT, disable_numparse=True, stralign=None)
    scroll = f'<div class="scroll" tabindex="0" role="region" aria-labelledby="{table.id}-caption">\n{text}\n</div>'
    foot = f'<p class="foot">{_text(table.foot)}</p>' if table.foot else ""
    caption = f'<figcaption id="{table.id}-caption">{_text(table.caption)}</figcaption>'
    kind = "table prose" if table.prose else "table"
    return f'<figure class="{kind}" id="{table.id}">\n{caption}\n{scroll}\n{foot}\n</figure>'


def _head(column: str, *, first: bool) -> str:
    return f'<th scope="col"{" class=name" if first else ""}>{_text(column)}</th>'


def _entry(entry: Entry, prose: bool) -> str:
    note = f"<small>{_text(entry.note)}</small>" if entry.note else ""
    return f"<td{'' if entry.tone == 'plain' else f' class={entry.tone}'}>{_text(entry.text)}{note}</td>"


def _header(cells: Sequence[str], _widths: Sequence[int], _aligns: Sequence[str]) -> str:
    return f"<thead><tr>{''.join(cell.strip() for cell in cells)}</tr></thead>\n<tbody>"


def _line(cells: Sequence[str], _widths: Sequence[int], _aligns: Sequence[str]) -> str:
    """A row of the body; its first entry heads the row, or all rows below where it stands alone."""
    first, *rest = (cell.strip() for cell in cells)
    head = first.removeprefix("<td").removesuffix("</td>")
    if not any(rest):
        return f'<tr class="setting"><th scope="rowgroup" colspan="{len(cells)}"{head}</th></tr>'
    return f'<tr><th scope="row"{head}</th>{"".join(rest)}</tr>'


_FORMAT = TableFormat(
    lineabove=Line("<table>", "", "", ""),
    linebelowheader=None,
    linebetweenrows=None,
    linebelow=Line("</tbody>\n</table>", "", "", ""),
    headerrow=_header,
    datarow=_line,
    padding=0,
    with_header_hide=None,
)

PLUGIN = Html
