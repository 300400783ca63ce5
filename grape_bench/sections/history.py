"""Where the past is: earlier commits in asv's pages, and how fast the harness itself was."""

from grape_bench.table import Links, Section
from grape_bench.view import View

_LINKS = (
    ("From commit to commit", "asv/index.html", "asv's pages, which grape-bench history publish writes"),
    (
        "The harness itself",
        "../results/pytest-benchmark/",
        "runs of pytest-benchmark, which tox -e bench saves and compares",
    ),
)


def history(_view: View) -> Section:
    """Links from reports/ to both histories; the same whether or not somebody has written them."""
    return Section("history", "History", (Links(_LINKS),))
