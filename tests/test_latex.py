"""Tables as LaTeX: what a paper can include."""

import re

from grape_bench.latex import latex
from grape_bench.table import Entry, Table


def _table(*entries, caption="A table", foot=""):
    return Table("one", caption, ("encoding", "64"), tuple((Entry("rope"), entry) for entry in entries), foot=foot)


def test_a_table_is_a_tabular_with_rules():
    text = latex(_table(Entry("▲ 1.05", "[1.01, 1.09]", "slower"), foot="read it so"))
    assert text.startswith("% A table\n% read it so\n\\begin{tabular}{lr}\n\\toprule\n")
    assert re.search(r"rope +& \$\\blacktriangle\$ 1.05 \(\[1.01, 1.09\]\) \\\\", text)
    assert text.endswith("\\bottomrule\n\\end{tabular}\n")


def test_no_string_becomes_a_command():
    text = latex(_table(Entry(r"\input{x} $a_b^c$ 5 % # & ~"), caption="one\n\\input{two}"))
    assert "\n\\input" not in text
    body = text.split("\\midrule")[1]
    assert r"\textbackslash{}input\{x\} \$a\_b\^{}c\$ 5 \% \# \& \textasciitilde{}" in body


def test_a_heading_fills_its_row():
    table = Table("one", "A table", ("encoding", "64", "128"), ((Entry("float32"),), (Entry("rope"), Entry("1"))))
    assert re.search(r"float32 +& +& +\\\\", latex(table))


def test_a_table_without_rows_can_be_written():
    assert "\\end{tabular}" in latex(Table("one", "Nothing", ("encoding", "64"), ()))
