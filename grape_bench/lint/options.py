"""Options of encodings and trainings that do not suit the lengths or the heads of a suite."""

import math
from collections.abc import Iterator

from grape_bench.lint import Fault, check
from grape_bench.lint.portrait import Known
from grape_bench.lint.subject import Subject
from grape_bench.suite_entry import CostGrid

_BASE = 10_000
_SHARE = 1 / 4  # of the planes; the base 10000 has it from 63 tokens on
_EXACT: dict[str, int] = {"float16": 2048, "bfloat16": 256}  # up to which a format has every whole number


@check(
    "GB111",
    "warning",
    "distances with parameters that training never shows",
    remedy="State the reach beside the training length, such as t5(max_distance='half').",
)
def untrained_distances(subject: Subject) -> Iterator[Fault]:
    """A bucket or a row of a learned table that no training distance reaches stays as it started. T5's reach is 128
    tokens where it is not stated, so trained at 64 its far buckets are never used. It is found where the option that
    bounds the distances lies above the training length."""
    for loc, seen, grid in subject.trained():
        for one in seen.parts:
            far = one.reach(grid.train_length)
            if one.hooks and far > grid.train_length:
                most = grid.train_length - 1
                yield Fault(loc, f"{one.name} has parameters up to {far} tokens, and training shows it {most} at most")


@check("GB112", "warning", "a base too large for the length", remedy=f"Go back to {_BASE}, or train longer sequences.")
def large_base(subject: Subject) -> Iterator[Fault]:
    """A larger base turns more slowly. Where most planes are nearly at rest over the whole training length they tell
    nothing apart, and convergence is slow. It is found where a base above 10000 lets fewer than a quarter of the planes
    turn once, ln(length / 2 pi) / ln(base); where heads have bases of their own the smallest counts."""
    for loc, seen, grid in subject.trained():
        base = max(map(_base, seen.whole))
        share = math.log(max(1.0, grid.train_length / (2 * math.pi))) / math.log(max(2.0, base))
        if base > _BASE and share < _SHARE:
            few = f"{share:.0%}".replace("%", " %")
            yield Fault(loc, f"with the base {base:g}, {few} of the planes turn once in {grid.train_length} tokens")


def _base(one: Known) -> float:
    """The smallest one that it turns by; 0 where it has none."""
    base = one.option("base") if "rotate" in one.hooks and "base" in one.plugin.options else 0
    return min((x for x in (base if isinstance(base, tuple) else (base,)) if isinstance(x, int | float)), default=0)


@check(
    "GB113",
    "note",
    "all heads share one bias",
    remedy="Let half of them have their own: heads='half'.",
)
def shared_heads(subject: Subject) -> Iterator[Fault]:
    """Where all heads add the same bias, none can look near while another looks far. It is found where heads='shared'
    is written, several heads read it, and the suite has no other sharing of the same encoding to compare it with."""
    parts = [one for _, seen in subject.members for one in seen.whole if "heads" in one.plugin.options]
    compared = {one.name for one in parts if one.option("heads") != "shared"}
    most = max([one.grid.model.heads for one in subject.trainings] + [max(one.grid.heads) for one in subject.costs])
    for loc, seen in subject.members:
        for one in seen.whole:
            if ("heads", "shared") in one.part.options and one.name not in compared and most > 1:
                yield Fault(loc, f"all of {most} heads read one row of {one.name}")


@check("GB114", "warning", "a mistake on purpose", remedy="Take the encoding that it wraps, or leave it out.")
def mistake(subject: Subject) -> Iterator[Fault]:
    """Some encodings are here to show the harm of what programs do wrong, such as a bias that is added before the
    scores are scaled. It is found wherever one that declares itself so is used; a suite that shows the harm says so in
    an ignore comment."""
    for loc, seen in subject.members:
        yield from (Fault(loc, f"{one.name}: {why}") for one in seen.whole if (why := one.fact("mistake")))


@check("GB115", "warning", "even training lengths alone", remedy="Mix lengths: leave `even` out.")
def even_lengths(subject: Subject) -> Iterator[Fault]:
    """Where all training lengths are even, parity becomes a feature, and other lengths suffer. It is found where a
    training draws its lengths from even numbers only."""
    for loc, grid, _ in subject.trainings:
        if grid.training.even:
            low = grid.training.shortest or grid.train_length
            yield Fault(
                (*loc, "training", "even"), f"no training sequence from {low} to {grid.train_length} tokens is odd"
            )


@check(
    "GB116",
    "warning",
    "positions in half precision",
    remedy="Compute positions in float32 inside the encoding, or keep to lengths that the format counts.",
)
def half_positions(subject: Subject) -> Iterator[Fault]:
    """bfloat16 has no whole number between 256 and 258, and float16 none between 2048 and 2050: counted in them,
    neighbours get one position. It is found where an encoding declares that it breaks the law `dtype`, and a suite asks
    for such a format at longer lengths. All encodings of this package count in float32."""
    for entry in subject.entries:
        last = max(entry.grid.lengths if isinstance(entry.grid, CostGrid) else entry.grid.test_lengths) - 1
        coarse = [dtype for dtype in entry.grid.dtypes if last > _EXACT.get(dtype, last)]
        for loc, seen in entry.members if coarse else ():
            if any("dtype" in one.fact("breaks") for one in seen.whole):
                exact = f"{coarse[0]}, exact to {_EXACT[coarse[0]]}"
                yield Fault(loc, f"{seen.text} counts positions in {exact}, and the last one is {last}")
