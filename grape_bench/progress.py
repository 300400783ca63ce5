"""What a run shows while it works: live lines on a terminal, plain lines elsewhere."""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn
from rich.progress import Progress as Bars

from grape_bench.cell import AccuracyCell, Block
from grape_bench.placing import Place, room
from grape_bench.record import AccuracyReading, MemoryReading, Record, TimeReading
from grape_bench.schedule import estimate, words
from grape_bench.worker import Finished, Result


class Progress:
    """Follows the blocks of one run, on the standard error stream.

    Args:
        name: of the suite; blocks: all that will be measured; records: older ones, for estimates.
        places: where they may run.
    """

    def __init__(self, name: str, blocks: Sequence[Block], records: Sequence[Record], places: Sequence[Place]):
        self._left, self._places = list(blocks), places
        self._records, self._done, self._total = list(records), 0, len(blocks)
        self._console = Console(stderr=True, highlight=False)
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._all = self._bars.add_task(name, total=len(blocks), note=self._remaining())
        self._live: dict[int, Block] = {}
        self._tasks: dict[int, TaskID] = {}

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def started(self, ticket: int, block: Block) -> None:
        """A block has begun."""
        self._live[ticket] = block
        self._tasks[ticket] = self._bars.add_task(f"  {title(block)}", total=None, note="")

    def dropped(self, block: Block) -> None:
        """A block had no member left that could be measured."""
        if block in self._left:
            self._left.remove(block)
        self._total -= 1
        self._bars.update(self._all, total=self._total, note=self._remaining())

    def noted(self, ticket: int, text: str) -> None:
        """A block told what it does now."""
        self._bars.update(self._tasks[ticket], note=text)

    def finished(self, ticket: int, event: Finished) -> None:
        """A block has ended."""
        block = self._end(ticket)
        self._say(f"{title(block)}: {_summary(event.results)} ({words(event.seconds)})")

    def recorded(self, records: Sequence[Record]) -> None:
        """What was measured tells how long the rest will take."""
        self._records += records

    def died(self, ticket: int, record: Record) -> None:
        """A block's process has ended before the block did; what is left of the block will begin anew."""
        block = self._end(ticket)
        self._say(f"{title(block)}: {record.cell.encoding} failed, {record.fault}: {record.message}")

    def lost(self, ticket: int, message: str) -> None:
        """A block's machine went; the block will begin anew elsewhere."""
        block = self._live.pop(ticket)
        self._bars.remove_task(self._tasks.pop(ticket))
        self._console.print(f"{title(block)}: {message}; tried again", markup=False, soft_wrap=True)

    def _say(self, line: str) -> None:
        self._done += 1
        left = "" if self._console.is_terminal else self._remaining()  # a terminal has it in its bar
        whole = f"[{min(self._done, self._total)}/{self._total}] {line}{left and f', {left}'}"
        self._console.print(whole, markup=False, soft_wrap=True)

    def _end(self, ticket: int) -> Block:
        block = self._live.pop(ticket)
        self._bars.remove_task(self._tasks.pop(ticket))
        if block in self._left:
            self._left.remove(block)
        self._bars.update(self._all, advance=1, note=self._remaining())
        return block

    def _remaining(self) -> str:
        left, unknown = estimate(self._left, self._records, *room(self._places))
        return f"about {words(left)} left" if left and not unknown else ""


def title(block: Block) -> str:
    """A block in a few words."""
    cell = block.cells[0]
    if isinstance(cell, AccuracyCell):
        return f"{cell.task} {cell.train_length}, {cell.encoding}, seed {cell.seed}"
    who = cell.encoding if len(block.cells) == 1 else f"{len(block.cells)} encodings"
    keys = f"/{cell.kv_heads}" if cell.kv_heads else ""
    return f"{cell.metric} {cell.scope} {cell.length}, {cell.heads}{keys} heads, {cell.dtype}, {cell.backend}, {who}"


def _summary(results: Sequence[Result]) -> str:
    members = [one for one in results if one.role == "member"]
    if len(members) == 1:
        return _words(members[0])
    return f"{sum(one.status == 'ok' for one in members)} of {len(members)} ok"


def _words(result: Result) -> str:
    match result.reading:
        case AccuracyReading(headline=headline, scores=scores):
            rows = [f"{one.length}: {one.figure:.2f}" for one in scores if one.group == headline]
            return f"{headline} {', '.join(rows)}"
        case MemoryReading(peak_mib=peak):
            return f"{peak:.1f} MiB"
        case TimeReading(samples_ms=samples):
            return f"{min(samples):.2f} ms at best"
        case _:
            return f"{result.status}: {result.message}"
