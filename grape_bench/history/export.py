"""Records of the runner into asv's store, for the commits and machines that they name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from grape_bench.asv_benchmarks.suite import Answer, Grid, Key, grids
from grape_bench.errors import UserError, allowed
from grape_bench.history.commits import BESIDE, Checkout, split
from grape_bench.history.store import ABSENT, FAILED, AsvStore, Cells
from grape_bench.outcome import machines
from grape_bench.record import Record
from grape_bench.store import Store


@dataclass(frozen=True)
class Exported:
    """What an export came to.

    Args:
        suites: by name, the number of commits; left_out: a sentence for all that belongs to no commit here.
    """

    suites: dict[str, int]
    left_out: tuple[str, ...] = ()

    def text(self) -> str:
        """A line for each suite."""
        return "\n".join(
            f"{name}: records of {count} commits are in asv's store" for name, count in self.suites.items()
        )


def export(names: Iterable[str], store: Store) -> Exported:
    """Write the records of suites for asv to show and compare. Doing it twice changes nothing.

    Args:
        names: of suites that have a file beside the benchmarks and records; all that have if none.

    Raises:
        UserError: the working tree has changes, the clone is shallow, a suite is not beside the benchmarks, since
            `asv run` would drop its names from asv's list, or no record names a commit of this checkout.
    """
    checkout = Checkout()
    checkout.require_clean()
    asked = _asked(list(names), store)
    asv = AsvStore()
    entries, counts, left_out = asv.discover(), dict[str, int](), list[str]()
    for name in asked:
        own = [one for one in grids(BESIDE) if one.suite == name]
        commits, refused = split(store.records(name), checkout)
        left_out += refused
        for commit, records in commits.items():
            left_out += _write(asv, entries, own, commit, records)
        counts[name] = len(commits)
    if not any(counts.values()):
        raise UserError("\n".join(left_out) or f"there are no records of {', '.join(asked)}; run it first")
    return Exported(counts, tuple(left_out))


def cells(grid: Grid, answers: Mapping[Key, Answer], records: list[Record]) -> dict[str, Cells]:
    """The cells of each benchmark of a grid that has any figure or failure, in asv's order."""
    found = {}
    at, seconds = max(one.at for one in records), sum({one.block_run: one.seconds or 0 for one in records}.values())
    for track in grid.tracks:
        own = [answers[grid.key(track, point)] for point in grid.points()]
        if any(one.standing != "missing" for one in own):
            found[f"suite.{grid.name}.{track}"] = Cells(tuple(_figure(one) for one in own), at, seconds)
    return found


def _figure(answer: Answer) -> Any:
    return answer.figure if answer.standing == "ok" else FAILED if answer.standing == "failed" else ABSENT


def _write(
    asv: AsvStore, entries: dict[str, dict[str, Any]], own: list[Grid], commit: str, records: list[Record]
) -> list[str]:
    left_out = []
    for machine in machines(records):
        found = dict[str, Cells]()
        for grid in own:
            found |= cells(grid, grid.answers(machine.records), list(machine.records))
        if unknown := found.keys() - entries.keys():
            raise UserError(
                f"asv does not find {', '.join(sorted(unknown))}; is this checkout's package the one that runs?"
            )
        asv.write(machine.environment, commit, entries, found)
        left_out += [f"older records of commit {commit[:10]} are left out: {each}" for each in machine.older]
    return left_out


def _asked(names: list[str], store: Store) -> list[str]:
    beside, recorded = sorted({one.suite for one in grids(BESIDE)}), store.suites()
    for name in names:
        if name not in beside:
            raise UserError(f"{name} has no file in {BESIDE}, from which asv learns its names.{allowed(name, beside)}")
        if name not in recorded:
            raise UserError(f"{name} has no records under {store.folder}.{allowed(name, recorded)}")
    found = names or [name for name in beside if name in recorded]
    if not found:
        raise UserError(f"none of {', '.join(beside)} has records under {store.folder}; run one of {BESIDE} first")
    return found
