"""Filters such as `encoding=rope` that narrow what a run does."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from grape_bench.cell import AccuracyCell, Block, CostCell
from grape_bench.errors import UserError, allowed
from grape_bench.expression import Expression, canonical
from grape_bench.suite_values import Plugins

if TYPE_CHECKING:
    from grape_bench.suite_format import ExpectedSkip

AnyCell = CostCell | AccuracyCell
_HIDDEN = {"versions", "model", "training", "test_lengths"}
KEYS = sorted({*CostCell.model_fields, *AccuracyCell.model_fields} - _HIDDEN)


def narrow(blocks: Sequence[Block], only: Sequence[str]) -> list[Block]:
    """The blocks with the cells that pass the filters.

    Filters of one key are alternatives, those of different keys must all hold. A cost block that keeps a cell keeps
    its baseline too, because a ratio needs both.

    Args:
        blocks: as `group` gives them.
        only: filters `key=value`; a key is a field of a cell.

    Raises:
        UserError: an unknown key, a value that no cell has, or filters that no cell passes together.
    """
    wanted = parsed(only, Plugins())
    cells = [cell for block in blocks for cell in block.cells]
    for key, values in wanted.items():
        known = {text for cell in cells if (text := _text(cell, key)) is not None}
        for value in sorted(values - known):
            raise UserError(f"--only {key}={value} matches nothing.{allowed(value, known)}")
    found = [one for block in blocks if (one := _narrowed(block, wanted)) is not None]
    if not found and blocks:
        raise UserError(f"no cell passes all of: {', '.join(only)}")
    return found


def unexpected(cells: Iterable[AnyCell], skips: "Iterable[ExpectedSkip]") -> list[AnyCell]:
    """The cells that none of the skips speaks of."""
    plugins = Plugins()
    expected = [parsed(one.only, plugins) for one in skips]
    return [cell for cell in cells if not any(_passes(cell, wanted) for wanted in expected)]


def parsed(only: Iterable[str], plugins: Plugins) -> dict[str, set[str]]:
    """The values that each key may have.

    Raises:
        UserError: a text is no filter, or has an unknown key or a value that cannot be one.
    """
    wanted: dict[str, set[str]] = {}
    for text in only:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not value:
            raise UserError(f"filter {text!r}: write KEY=VALUE, such as encoding=rope")
        if key not in KEYS:
            raise UserError(f"filter {text!r}: there is no key {key!r}.{allowed(key, KEYS)}")
        wanted.setdefault(key, set()).add(_spelling(key, value, plugins))
    return wanted


def _spelling(key: str, value: str, plugins: Plugins) -> str:
    """One spelling for each value: canonical expressions, plain numbers, and the metric that is really measured."""
    if key in ("encoding", "task"):
        return str(Expression.parse(value, plugins[f"{key}s"]))
    if key == "backend":
        return value  # a class of the user's has capitals
    if key == "metric":
        return str(plugins["metrics"][value].facts.get("derived_from") or value)
    try:
        return str(canonical(float(value)))
    except ValueError:
        return value.lower()


def _passes(cell: AnyCell, wanted: dict[str, set[str]]) -> bool:
    return all(_text(cell, key) in values for key, values in wanted.items())


def _text(cell: AnyCell, key: str) -> str | None:
    value = getattr(cell, key, None)
    if key == "kv_heads" and isinstance(cell, CostCell):
        value = cell.kv_heads or cell.heads
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _narrowed(block: Block, wanted: dict[str, set[str]]) -> Block | None:
    kept = [_passes(cell, wanted) for cell in block.cells]
    if not any(kept):
        return None
    chosen = [index for index, keep in enumerate(kept) if keep or index == block.baseline]
    baseline = chosen.index(block.baseline) if block.baseline is not None else None
    return Block(tuple(block.cells[index] for index in chosen), baseline)
