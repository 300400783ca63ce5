"""The figures of README.md and docs/findings.md, made from the committed records.

python scripts/findings.py            print both, and the cells behind each figure of README.md
python scripts/findings.py --write    put them between the marks of the two pages
"""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tabulate import tabulate

from grape_bench.claims import Verdict, verdicts
from grape_bench.compare import figure
from grape_bench.evidence import Evidence
from grape_bench.registry import Registry
from grape_bench.renderers.markdown import escape
from grape_bench.sections.article import article
from grape_bench.sections.columns import chosen, largest
from grape_bench.sections.ranking import ranking
from grape_bench.sections.wording import ABSENT
from grape_bench.store import Store
from grape_bench.suite import expand, load
from grape_bench.table import Entry, Section, Table
from grape_bench.view import View

HOME = Path(__file__).resolve().parents[1]
BOARD = "source-table-cpu"  # the suite of README's table
COLUMNS = {  # of its report, and what they are called in README
    "A": "A",
    "B": "B",
    "C at 2×": "C at 2×",
    "its rank": "C, group",
    "relative training time": "train step",
    "memory added": "MiB",
    "did not learn": "did not learn",
}
ARTICLE = re.compile(r"C(\d+)")  # claims of the source article by their numbers
Page = tuple[Path, str]  # a file, and the name of the marks in it


class Finding(NamedTuple):
    """A verdict, and the suite that it is of."""

    suite: str
    verdict: Verdict


@cache
def view(name: str) -> View:
    suite = load(HOME / "suites" / f"{name}.yaml")
    return View.of(suite, expand(suite), Store(HOME / "results").records(name), Registry("metrics"))


@cache
def findings() -> tuple[Finding, ...]:
    """Every claim of every suite, those of sizes for other machines aside."""
    names = [path.stem for path in sorted((HOME / "suites").glob("*.yaml")) if "\nclaims:" in path.read_text("utf-8")]
    return tuple(Finding(name, one) for name in names for one in verdicts(view(name)))


def board() -> str:
    """README's table: the best first in the area of task C, as its report ranks them."""
    measured, ranks = _table(article(view(BOARD)), "article-table"), _table(ranking(view(BOARD)), "task-3-ranking")
    found = {row[0].text: dict(zip(measured.columns, row, strict=True)) for row in measured.rows}
    for row in ranks.rows:
        by_title = dict(zip(ranks.columns, row, strict=False))  # the last rank is that of the area
        found[row[0].text]["its rank"] = by_title.get("its rank", ABSENT)
    rows = [[f"`{row[0].text}`", *(_shown(found[row[0].text][one]) for one in COLUMNS)] for row in ranks.rows]
    return tabulate(rows, ["encoding", *COLUMNS.values()], "pipe", disable_numparse=True)


def _shown(entry: Entry) -> str:
    """Without the article's figures, which the report has."""
    text = entry.text.removeprefix("group ").removesuffix(" trainings").removesuffix(" MiB")
    return " ".join([text, *re.findall(r"\[.*?\]", entry.note)])


def claims() -> str:
    """The article's claims in their order, then ours."""
    of_article = sorted(filter(_number, findings()), key=_number)
    ours = [one for one in findings() if not _number(one)]
    parts = ["### The article's", _claims(of_article), "### Others, and ours", _claims(ours)]
    return "\n\n".join(parts)


def _claims(found: Iterable[Finding]) -> str:
    rows = [
        [one.verdict.claim.id, escape(one.verdict.claim.says), f"**{one.verdict.word}**", _why(one), _link(one.suite)]
        for one in found
    ]
    return _markdown(rows, ["claim", "in words", "verdict", "rests on", "suite"])


def _why(found: Finding) -> str:
    """The pairs that decide, or leave it undecided."""
    if not found.verdict.records:
        return f"no records: `grape-bench suites/{found.suite}.yaml`"
    return "<br>".join(escape(_pair(one)) for one in found.verdict.evidence if one.word == found.verdict.word)


def _pair(one: Evidence) -> str:
    said = f"{one.what}: {figure(one.comparison)}" if one.comparison else one.what
    return f"{said}; {one.remark}" if one.remark else said


def _link(suite: str) -> str:
    return f"[{suite}](../reports/{suite}.md)" if Store(HOME / "results").records(suite) else suite


def _number(found: Finding) -> int:
    match = ARTICLE.match(found.verdict.claim.id)
    return int(match[1]) if match else 0


def _table(section: Section | None, name: str) -> Table:
    assert section is not None
    return next(one for one in section.pieces if isinstance(one, Table) and one.id == name)


def _markdown(rows: Iterable[Sequence[str]], columns: Sequence[str]) -> str:
    """Not set in columns, since sentences would make them as wide as the longest."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (columns, ["---"] * len(columns), *rows))


def sources() -> str:
    """The cells behind each figure of README: those of its table by row, those of its sentences by claim."""
    rows = [[f"`{name}`", where, " ".join(ids)] for name, where, ids in _cells()]
    known = figures()
    for quoted in in_prose((HOME / "README.md").read_text("utf-8")):
        for found, evidence in known.get(quoted, []):
            rows.append([quoted, f"{found.verdict.claim.id} of {found.suite}", " ".join(evidence.records)])
    return _markdown(rows, ["figure", "of", "cells"])


def figures() -> dict[str, list[tuple[Finding, Evidence]]]:
    """The pairs of all claims by what prose writes of them: a figure and its interval, without plus signs."""
    known: dict[str, list[tuple[Finding, Evidence]]] = {}
    for found in findings():
        for one in found.verdict.evidence:
            if one.comparison:
                known.setdefault(figure(one.comparison).replace("+", ""), []).append((found, one))
    return known


def in_prose(page: str) -> list[str]:
    """Figures with intervals in a page, outside of its tables and code."""
    lines = (line for line in re.sub(r"```.*?```", "", page, flags=re.DOTALL).splitlines() if not line.startswith("|"))
    return re.findall(r"-?\d*\.\d+ \[[^\]]+\]", " ".join(lines))


def _cells() -> Iterator[tuple[str, str, list[str]]]:
    for letter, course in chosen(view(BOARD)).items():
        for trial in course.trials:
            yield trial.encoding, letter, [one.id for one in trial.records]
    for metric in ("train_step_ms", "peak_mib"):
        found = largest(view(BOARD), "model", metric)
        assert found is not None
        _, grid, length = found
        for name in grid.encodings:
            yield name, metric, [grid.outcomes[name, length].cell.id]


PARTS = {("README.md", "board"): board, ("docs/findings.md", "claims"): claims}


def written(page: str, name: str, text: str) -> str:
    """The page with a text between its marks."""
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->\n"
    above, rest = page.split(begin)
    return f"{above}{begin}\n{text}\n\n{end}{rest.split(end)[1]}"


if __name__ == "__main__":
    for (path, name), make in PARTS.items():
        if sys.argv[1:] == ["--write"]:
            page = HOME / path
            page.write_text(written(page.read_text("utf-8"), name, make()), "utf-8")
        else:
            print(make(), end="\n\n")
    if sys.argv[1:] != ["--write"]:
        print(sources())
