"""Where and how it was measured."""

from collections.abc import Iterable, Iterator

from grape_bench.bench import CONTENDED, Bench, Grid, contention
from grape_bench.environment import COMPARED, Environment
from grape_bench.outcome import Outcome
from grape_bench.record import MemoryReading, TimeReading
from grape_bench.sections.wording import amount_of
from grape_bench.table import Entry, Piece, Prose, Row, Section, Table
from grape_bench.view import View

DISAGREEMENT = 0.05  # of a peak and the high-water mark; beyond it, libraries took memory of their own


def protocol(view: View) -> Section | None:
    """The environments, and how each cost metric was sampled."""
    if not view.machines:
        return None
    pieces: list[Piece] = [_environments(view.environments)]
    pieces += [
        Prose(f"Older cost records of {one.environment.machine} are left out, ratios being of one environment: {each}.")
        for one in view.machines
        for each in one.older
    ]
    pieces += [
        _sampling(view, bench, f"bench-{number}-protocol")
        for number, bench in enumerate(view.benches, 1)
        if bench.machine
    ]
    return Section("environment", "Environment and protocol", tuple(pieces))


def _environments(environments: tuple[Environment, ...]) -> Table:
    rows = []
    for key in Environment.model_fields:
        values = [Entry(_plain(getattr(one, key))) for one in environments]
        rows.append((Entry(key + (" *" if key in COMPARED else "")), *values))
    columns = ("key", *(one.machine for one in environments))
    foot = "* must be equal before two cost records are compared. As of the newest record of each machine."
    return Table("environment-table", "Environment", columns, tuple(rows), prose=True, foot=foot)


def _plain(value: object) -> str:
    if value is None:
        return "unknown"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _sampling(view: View, bench: Bench, anchor: str) -> Table:
    rows = [_row(view, grids) for grids in bench.metrics().values()]
    columns = (
        "metric",
        "scope",
        "processes",
        "rounds",
        "calls a sample",
        "clock",
        "threads",
        "wall / CPU",
        "contention",
    )
    where = f" on {bench.environment.machine}" if bench.environment else ""
    foot = (
        f"Contention: a cell is contended where the median of wall time over CPU time is above {CONTENDED}; "
        "its CPU time still counts, its wall time does not. Peaks are the allocator's; the high-water mark of the "
        "process also sees scratch memory of libraries, and pages."
    )
    return Table(anchor, f"How cost was sampled{where}", columns, tuple(rows), prose=True, foot=foot)


def _row(view: View, grids: tuple[Grid, ...]) -> Row:
    found = [one for grid in grids for one in grid.outcomes.values() if one.standing == "ok"]
    head = (Entry(grids[0].metric), Entry(grids[0].scope))
    processes = Entry(_range(len(one.records) for one in found))
    times = list(_times(found))
    if times:
        return (*head, processes, *map(Entry, _protocol(times)), *_contention(found))
    return (*head, processes, *(Entry("–") for _ in range(5)), _checked(found))


def _protocol(times: list[TimeReading]) -> tuple[str, ...]:
    clocks = ", ".join(sorted({one.clock for one in times}))
    rounds, inner = (
        _range(values) for values in ([len(one.samples_ms) for one in times], [one.inner for one in times])
    )
    return rounds, inner, clocks, _range(one.threads for one in times)


def _contention(found: list[Outcome]) -> tuple[Entry, Entry]:
    ratios = [ratio for one in found if (ratio := contention(one.records)) is not None]
    if not ratios:
        return Entry("–"), Entry("not known for this clock")
    contended = sum(ratio > CONTENDED for ratio in ratios)
    word = f"{contended} of {amount_of(len(ratios), 'cell')} contended" if contended else "none"
    return Entry(f"{min(ratios):.2f} to {max(ratios):.2f}"), Entry(word, tone="unclear" if contended else "plain")


def _times(found: Iterable[Outcome]) -> Iterator[TimeReading]:
    for outcome in found:
        yield from (one.reading for one in outcome.records if isinstance(one.reading, TimeReading))


def _checked(found: Iterable[Outcome]) -> Entry:
    """How the allocator's peaks agree with the process's high-water marks, each taken alone in its process."""
    peaks = [one.reading for outcome in found for one in outcome.records if isinstance(one.reading, MemoryReading)]
    pairs = [(one.resident_mib, one.peak_mib) for one in peaks if one.resident_mib is not None and one.peak_mib]
    if not pairs:
        return Entry("one member alone in its process" if peaks else "–")
    far = sum(abs(mark / peak - 1) > DISAGREEMENT for mark, peak in pairs)
    word = (
        f"{far} of {amount_of(len(pairs), 'peak')} differ from the high-water mark by over {100 * DISAGREEMENT:.0f} %"
    )
    return Entry(word, tone="unclear" if far else "plain")


def _range(values: Iterable[int]) -> str:
    found = sorted(values)
    if not found:
        return "–"
    return f"{found[0]}" if found[0] == found[-1] else f"{found[0]} to {found[-1]}"
