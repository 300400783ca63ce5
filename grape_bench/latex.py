"""Tables as LaTeX, for papers."""

from tabulate import tabulate

from grape_bench.printable import on_one_line
from grape_bench.table import Entry, Table

# Signs that LaTeX has commands for, of amssymb in the case of triangles and ticks.
_SIGNS: dict[str, str | int | None] = {
    "▲": r"$\blacktriangle$", "▼": r"$\blacktriangledown$", "✓": r"$\checkmark$", "✗": r"$\times$", "×": r"$\times$",
    "±": r"$\pm$", "−": r"$-$", "†": r"\dag{}", "°": r"$^\circ$", "–": "--", "…": r"\dots{}", "\u2264": r"$\le$",
}  # fmt: skip


def latex(table: Table) -> str:
    """A `tabular` with the rules of booktabs, and the caption and foot in comments above it."""
    rows = [[_text(entry) for entry in row] + [""] * (len(table.columns) - len(row)) for row in table.rows]
    align = ["left"] + ["left" if table.prose else "right"] * (len(table.columns) - 1)
    columns = [on_one_line(column) for column in table.columns]
    text = tabulate(
        rows, columns, tablefmt="latex_booktabs", colalign=align if rows else None, disable_numparse=True
    ).translate(str.maketrans(_SIGNS))
    comments = [f"% {on_one_line(line)}" for line in (table.caption, table.foot) if line]
    return "\n".join([*comments, text]) + "\n"


def _text(entry: Entry) -> str:
    return on_one_line(f"{entry.text} ({entry.note})" if entry.text and entry.note else entry.text or entry.note)
