"""A table as HTML, which can be read without the script of the page."""

import html
import re
from collections.abc import Iterator

from grape_bench.printable import printable
from grape_bench.table import Entry, Row, Table

_INTERVAL = re.compile(r"\[[^\]]*\]")


def escape(text: str) -> str:
    """Escaped for element content and attributes; control characters, which HTML forbids, are shown as �."""
    return html.escape(printable(text)).replace(" %", "&nbsp;%")


def block(table: Table) -> str:
    """A table with its caption, its foot, and what its rows rest on."""
    named = f'aria-labelledby="{table.id}-caption"'
    caption = f'<caption id="{table.id}-caption"><span>{escape(table.caption)}</span></caption>'
    scroll = f'<div class="scroll" tabindex="0" role="group" {named}>\n{_grid(table, caption)}\n</div>'
    foot = f'<p class="foot">{escape(table.foot)}</p>' if table.foot else ""
    kind = "table prose" if table.prose else "table"
    return f'<div class="{kind}" id="{table.id}">\n{scroll}\n{foot}{_folds(table)}</div>'


def _folds(table: Table) -> str:
    """What rows rest on; the script unfolds it below a row instead."""
    behind = [row[0].behind for row in table.rows if row[0].behind]
    if not behind:
        return ""
    each = "\n".join(f"<details><summary>{escape(one.caption)}</summary>\n{_grid(one)}\n</details>" for one in behind)
    title = "Its cells, with status, environment and samples"
    return f'<details class="folds"><summary>{title}</summary>\n{each}\n</details>\n'


def _grid(table: Table, caption: str = "") -> str:
    """The table proper; one without a caption is the target of a link."""
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in table.columns)
    groups = ("\n".join(_row(row, len(table.columns)) for row in rows) for rows in _groups(table))
    bodies = "\n".join(f"<tbody>\n{rows}\n</tbody>" for rows in groups)
    anchor = "" if caption else f' id="{table.id}"'
    return f"<table{anchor}>{caption}\n<thead><tr>{head}</tr></thead>\n{bodies}\n</table>"


def _groups(table: Table) -> Iterator[list[Row]]:
    """The rows below each heading, with it; those above the first heading are a group too."""
    group: list[Row] = []
    for row in table.rows:
        if len(row) == 1 and group:
            yield group
            group = []
        group.append(row)
    if group:
        yield group


def _row(row: Row, columns: int) -> str:
    """The first entry heads its row, or all rows below where it stands alone."""
    first, *rest = row
    if not rest:
        tag = f'th scope="rowgroup" colspan="{columns}"'
        return f'<tr class="setting">{_cell(first, tag)}</tr>'
    entries = [_cell(first, 'th scope="row"'), *map(_cell, rest)]
    return f"<tr>{''.join(entries)}</tr>"


def _cell(entry: Entry, tag: str = "td") -> str:
    """An element with what an entry says; its tone is the class."""
    kind = "" if entry.tone == "plain" else f' class="{entry.tone}"'
    text = escape(entry.text)
    if entry.behind:
        text = f'<a class="unfold" href="#{entry.behind.id}">{text}</a>'
    whole = _INTERVAL.sub(lambda found: found[0].replace(" ", "&nbsp;"), escape(entry.note))  # notes may wrap
    note = f"<small>{whole}</small>" if entry.note else ""
    return f"<{tag}{kind}>{text}{note}</{tag[:2]}>"
