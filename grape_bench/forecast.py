"""What a run is going to do, in words: how many cells and blocks of each kind, and about how long they take."""

from collections.abc import Iterable, Sequence

from grape_bench.cell import Block
from grape_bench.placing import Place, room
from grape_bench.record import Record
from grape_bench.schedule import estimate, words
from grape_bench.tuning import TUNING_SEED


def forecast(asked: Sequence[Block], left: Sequence[Block], records: Iterable[Record], places: Sequence[Place]) -> str:
    """A row for all that is asked for and what is left of it, a row for each kind, and an estimate.

    Args:
        records: by which time is estimated.
    """
    rows = [f"{_count(asked)}; to measure: {_count(left)}"]
    kinds, still = _kinds(asked), _kinds(left)
    for kind in dict.fromkeys([*kinds, *still]):  # tuning is asked for by what it decides
        rows.append(f"  {kind}: {_count(kinds.get(kind, []))}; to measure: {_count(still.get(kind, []))}")
    took, unknown = estimate(left, records, *room(places))
    if unknown and unknown == len(left):
        said = "none, since no block like these is on record"
    else:
        said = words(took) + (f", and {unknown} blocks like none on record" if unknown else "")
    return "\n".join([*rows, f"  estimate: {said}"])


def remainder(left: Sequence[Block], records: Iterable[Record], places: Sequence[Place]) -> str:
    """What a run leaves to the next one, with a time where all of it can be estimated."""
    took, unknown = estimate(left, records, *room(places))
    return _count(left) + ("" if unknown else f", about {words(took)}")


def _count(blocks: Sequence[Block]) -> str:
    cells = len({cell.id for block in blocks for cell in block.cells})
    return f"{cells} cell{'s' * (cells != 1)} in {len(blocks)} block{'s' * (len(blocks) != 1)}"


def _kinds(blocks: Iterable[Block]) -> dict[str, list[Block]]:
    kinds: dict[str, list[Block]] = {}
    for block in blocks:
        cell = block.cells[0]
        kind = "tuning" if cell.kind == "accuracy" and cell.seed == TUNING_SEED else cell.metric
        name = f"{kind} ({cell.scope if cell.kind == 'cost' else cell.task})"
        kinds.setdefault(name, []).append(block)
    return kinds
