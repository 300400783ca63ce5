"""Two runs, encodings or commits against each other, cell by cell, with the project's one comparer."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tabulate import tabulate

from grape_bench.cell import CostCell
from grape_bench.environment import differences
from grape_bench.errors import UserError
from grape_bench.expression import Expression
from grape_bench.ranking import RATIO_MARGIN, SCORE_MARGIN, Comparison, Word, by_seed, compare
from grape_bench.record import Record
from grape_bench.registry import Registry

_TIME_WORDS: tuple[Word, ...] = ("faster", "slower", "same", "unclear")
REGRESSIONS: tuple[Word, ...] = ("slower", "larger", "worse")
_SHORTEST_COMMIT = 7  # hexadecimal digits

Key = tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """One cell of both sides.

    Args:
        suite, what: where it is from; comparison: of the second side against the first.
    """

    suite: str
    what: str
    comparison: Comparison


@dataclass(frozen=True)
class Versus:
    """All cells that two sides share.

    Args:
        first, second: what was named; forced: keys in which the environments differ, where that was overruled.
        ratio_margin, score_margin: half widths of `same`.
    """

    first: str
    second: str
    rows: tuple[Row, ...]
    forced: tuple[str, ...] = ()
    ratio_margin: float = RATIO_MARGIN
    score_margin: float = SCORE_MARGIN

    @property
    def regressed(self) -> bool:
        """Something of the second side is slower, larger or worse beyond the margin."""
        return any(row.comparison.word in REGRESSIONS for row in self.rows)

    def text(self) -> str:
        """A table, and how often each word was said."""
        head = f"{self.second} against {self.first}"
        body = [
            [
                row.suite,
                row.what,
                figure(row.comparison),
                "paired" if row.comparison.paired else "unpaired",
                row.comparison.word,
            ]
            for row in self.rows
        ]
        table = tabulate(body, ["suite", "cell", f"{head}, 95 % interval", "samples", "verdict"], disable_numparse=True)
        counts = Counter(row.comparison.word for row in self.rows)
        words = [*_TIME_WORDS, *(word for word in counts if word not in _TIME_WORDS)]
        closing = ", ".join(f"{counts[word]} {word}" for word in words)
        margins = f"margins: {self.ratio_margin:.1%} of time and memory, {self.score_margin:g} of accuracy"
        forced = [f"forced although {sentence}" for sentence in self.forced]
        return "\n".join([table, "", f"{closing} ({margins})", *forced])


def versus(records: Iterable[Record], first: str, second: str, *, margin: float | None, force: bool) -> Versus:
    """Compare what two words name: two encodings, two runs or two commits.

    Args:
        records: of all suites that may be looked at.
        first, second: encoding expressions, or the beginnings of run ids or of commit hashes.
        margin: of the verdicts, None for the defaults; force: compare unlike environments, and say so.

    Raises:
        UserError: a word names nothing, the two name different kinds of things, they share no cell or seed, their
            texts differ, or their environments do in a key that matters.
    """
    good = [one for one in records if one.status == "ok" and one.role == "member"]
    kind, left, right = _sides(good, first, second)
    pairs = [(left[key], right[key]) for key in left if key in right and _share(left[key], right[key])]
    if not pairs:
        raise UserError(f"{first} and {second} share no cell with a record on both sides, nor a seed of a training")
    forced = sorted({sentence for pair in pairs for sentence in _unlike(*pair)})
    if forced and not force:
        raise UserError(
            f"{first} and {second} are not comparable: {'; '.join(forced)}. --force compares them all the same"
        )
    try:
        rows = [row for a, b in pairs for row in _rows(a, b, margin, kind)]
    except ValueError as error:  # such as trainings on two texts
        raise UserError(f"{first} and {second} cannot be compared: {error}") from None
    margins = (RATIO_MARGIN, SCORE_MARGIN) if margin is None else (margin, margin)
    return Versus(first, second, tuple(rows), tuple(forced), *margins)


def _sides(
    records: Sequence[Record], first: str, second: str
) -> tuple[str, dict[Key, list[Record]], dict[Key, list[Record]]]:
    for kind, named in _KINDS.items():
        sides = [list(filter(named(word), records)) for word in (first, second)]
        if all(sides):
            left, right = (_by_cell(side, kind) for side in sides)
            return kind, left, right
        if any(sides):
            known, other = (first, second) if sides[0] else (second, first)
            raise UserError(f"{known} is {kind}, and {other} is none with records")
    runs = ", ".join(sorted({one.run for one in records})) or "none"
    raise UserError(f"{first!r} and {second!r} name no encodings, runs or commits on record; runs: {runs}")


def _of_encoding(word: str) -> Callable[[Record], bool]:
    encoding = _canonical(word)
    return lambda record: record.cell.encoding == encoding


def _of_run(word: str) -> Callable[[Record], bool]:
    return lambda record: record.run.startswith(word)


def _of_commit(word: str) -> Callable[[Record], bool]:
    return lambda record: len(word) >= _SHORTEST_COMMIT and (record.environment.commit or "").startswith(word)


_ENCODING = "an encoding"
_KINDS = {_ENCODING: _of_encoding, "a run": _of_run, "a commit": _of_commit}  # what a word may name, first come first


def _canonical(word: str) -> str:
    try:
        return str(Expression.parse(word, Registry("encodings")))
    except UserError:  # then it is a run or a commit
        return ""


def _by_cell(records: Iterable[Record], kind: str) -> dict[Key, list[Record]]:
    """Records of one cell, or of one encoding over seeds; two encodings meet in their setting."""
    found: dict[Key, list[Record]] = defaultdict(list)
    for one in records:
        encoding = "" if kind == _ENCODING else one.cell.encoding
        found[(one.suite, one.cell.setting, encoding)].append(one)
    return found


def _share(a: Sequence[Record], b: Sequence[Record]) -> bool:
    """Costs are of one cell; accuracies are compared seed by seed, and need one that both have."""
    return a[0].cell.kind == "cost" or bool(by_seed(a).keys() & by_seed(b).keys())


def _unlike(a: Sequence[Record], b: Sequence[Record]) -> set[str]:
    if a[0].cell.kind != "cost":
        return set()
    return {sentence for one in a for other in b for sentence in differences(one.environment, other.environment)}


def _rows(a: Sequence[Record], b: Sequence[Record], margin: float | None, kind: str) -> Iterator[Row]:
    cell = a[0].cell
    name = "" if kind == _ENCODING else f"{cell.encoding}, "
    if isinstance(cell, CostCell):
        yield Row(a[0].suite, f"{name}{described(cell)}", compare(b, a, margin, force=True))
        return
    for length in cell.test_lengths:
        what = f"{name}{cell.task} accuracy at {length}, trained at {cell.train_length}"
        yield Row(a[0].suite, what, compare(b, a, margin, length=length))


def described(cell: CostCell) -> str:
    """A cost cell in words, without its encoding."""
    keys = f"/{cell.kv_heads}" if cell.kv_heads else ""
    shape = f"{cell.heads}{keys} heads of {cell.head_dim}, batch {cell.batch}"
    return f"{cell.metric} {cell.scope} {cell.length}, {shape}, {cell.dtype}, {cell.backend}"


def figure(comparison: Comparison) -> str:
    """A ratio or a difference, with its interval where it scatters."""
    interval = comparison.interval
    sign = "+" if comparison.difference else ""
    scatters = interval.known and interval.low < interval.high
    bounds = f" [{interval.low:{sign}.3f}, {interval.high:{sign}.3f}]" if scatters else ""
    return f"{interval.mid:{sign}.3f}{bounds}"
