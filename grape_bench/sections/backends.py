"""Backends beside each other: what they cost, how their memory grows, and how they say they computed."""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from grape_bench.bench import Bench, Grid, Setting, lengths_of, value
from grape_bench.sections.wording import ABSENT, MARKS, absolute, factor, span, standing
from grape_bench.table import Entry, Piece, Row, Section, Table
from grape_bench.view import View

USUAL = "sdpa"  # the way most users run a bias, to which others are compared
_FEWEST = 3  # lengths of a fit

Family = tuple[str, str, Setting]  # scope, metric, and the setting without its backend


def backends(view: View) -> Section | None:
    """None where a suite has one backend that has nothing to say."""
    pieces: list[Piece] = []
    for number, bench in enumerate(view.benches, 1):
        several = {family: grids for family, grids in _families(bench).items() if len(grids) > 1}
        for index, (family, grids) in enumerate(several.items(), 1):
            anchor = f"bench-{number}-backends-{index}"
            if USUAL in grids:
                pieces.append(_beside(view, bench, family, grids, anchor))
            if view.unit(family[1]) == "MiB":
                pieces += _growth(family, grids, f"{anchor}-growth")
    pieces += _said(view)
    return Section("backends", "Backends", tuple(pieces)) if pieces else None


def _families(bench: Bench) -> dict[Family, dict[str, Grid]]:
    """Grids by backend where they are alike in everything else."""
    found: defaultdict[Family, dict[str, Grid]] = defaultdict(dict)
    for grid in bench.grids:
        found[grid.scope, grid.metric, grid.setting._replace(backend="")][grid.setting.backend] = grid
    return found


def _beside(view: View, bench: Bench, family: Family, grids: dict[str, Grid], anchor: str) -> Table:
    lengths = lengths_of(grids.values())
    unit, rows = view.unit(family[1]), list[Row]()
    for backend in [one for one in grids if one != USUAL]:
        shared = [one for one in grids[backend].encodings if one in grids[USUAL].encodings]
        for encoding in shared:
            entries = (_ratio(bench, grids, backend, (encoding, length), unit) for length in lengths)
            rows.append((Entry(encoding, backend), *entries))
    caption = (
        f"{view.name(family[1]).capitalize()} as a ratio to {USUAL}, the same encoding, by length: {_place(family)}"
    )
    return Table(anchor, caption, ("encoding", *map(str, lengths)), tuple(rows))


def _ratio(bench: Bench, grids: dict[str, Grid], backend: str, at: tuple[str, int], unit: str) -> Entry:
    one, other = (grids[name].outcomes.get(at) for name in (backend, USUAL))
    if one is None or other is None:
        return ABSENT
    found = bench.between(one, other) if one.standing == other.standing == "ok" else None
    if found is None:
        return (
            standing([one, other]) if "ok" not in (one.standing, other.standing) else Entry(absolute(one, unit) or "–")
        )
    figures = f"{absolute(one, unit)} for {absolute(other, unit)}"
    return Entry(
        f"{MARKS[found.word]} {factor(found.interval)}", f"{span(found.interval)} {figures}".strip(), found.word
    )


def _growth(family: Family, grids: dict[str, Grid], anchor: str) -> Iterator[Table]:
    """The power of the length with which peaks grow, by least squares of logarithms."""
    encodings = dict.fromkeys(one for grid in grids.values() for one in grid.encodings)
    rows = [(Entry(one), *(Entry(_exponent(grid, one)) for grid in grids.values())) for one in encodings]
    if any(entry.text for row in rows for entry in row[1:]):
        foot = f"1 is linear and 2 a matrix; fitted where there are at least {_FEWEST} lengths."
        yield Table(
            anchor,
            f"Memory grows with the length to the power of: {_place(family)}",
            ("encoding", *grids),
            tuple(rows),
            foot=foot,
        )


def _exponent(grid: Grid, encoding: str) -> str:
    found = [(length, value(grid.outcomes.get((encoding, length)))) for length in grid.lengths]
    points = [(length, peak) for length, peak in found if peak]
    if len(points) < _FEWEST:
        return ""
    x, y = np.log2(np.array(points)).T
    slope, _ = np.polyfit(x, y, 1)
    return f"{slope:.2f}"


def _place(family: Family) -> str:
    return f"{family[0]}, {family[2]}"


def _said(view: View) -> Iterator[Table]:
    """What backends said of how they computed, where the cell alone does not tell."""
    found: defaultdict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
    for outcome in view.outcomes():
        cell = outcome.cell
        for said in ["; ".join(record.notes) for record in outcome.records if record.notes]:
            found[cell.encoding, cell.metric, cell.backend, cell.dtype][said] = None
    if found:
        rows = tuple((*map(Entry, key), Entry(" or ".join(said))) for key, said in found.items())
        columns = ("encoding", "metric", "backend", "number format", "computed by")
        yield Table("backends-said", "What backends said of how they computed", columns, rows, prose=True)
