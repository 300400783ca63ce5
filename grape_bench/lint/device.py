"""What a machine cannot hold, and what takes it days."""

from collections.abc import Iterator
from typing import NamedTuple

from grape_bench.lint import Fault, check
from grape_bench.lint.price import price
from grape_bench.lint.subject import Member, Subject
from grape_bench.suite_text import Loc

_LARGE_GIB = 0.5  # the bias of 32 heads at 2048 tokens, which the article blames for its peak
_DAY = 24


class Matrix(NamedTuple):
    """A dense bias: one float32 number for each pair of tokens and head, whatever the queries' format.

    Args:
        copies: one, or one for each sequence.
    """

    loc: Loc
    encoding: str
    backend: str
    copies: int
    heads: int
    length: int

    @property
    def gib(self) -> float:
        return 4 * self.copies * self.heads * self.length**2 / 2**30

    def __str__(self) -> str:
        each = f"{self.copies} x " if self.copies > 1 else ""
        numbers = f"{each}{self.heads} heads x {self.length} x {self.length}"
        return f"{self.encoding} through {self.backend} holds a bias of {numbers} float32 numbers, {self.gib:.3g} GiB"


@check(
    "GB121",
    "error",
    "a dense bias that does not fit",
    remedy="Take a backend that builds no matrix, such as auto, or fewer heads and tokens.",
    of_machine=True,
)
def too_large(subject: Subject) -> Iterator[Fault]:
    """A bias that is kept whole takes heads x tokens x tokens numbers of 4 bytes, and as many for each sequence where
    it reads content. It is found where that alone exceeds the memory of the machine that checks, or what --memory says,
    for backends that declare themselves dense. Scores and gradients come on top: what passes may not fit either."""
    for one in _largest(subject):
        if one.gib > subject.machine.memory_gib:
            yield Fault(one.loc, f"{one}, and the device has {subject.machine.memory_gib:.3g}")


@check(
    "GB122",
    "warning",
    "a bias expanded over the batch",
    remedy="Take a backend that builds no matrix, such as auto, or a batch of one.",
)
def expanded(subject: Subject) -> Iterator[Fault]:
    """A bias that reads content differs from sequence to sequence, so a dense backend keeps one matrix for each and the
    peak grows with the batch. It is found from half a GiB on, for encodings that declare a bias by content."""
    for one in _largest(subject):
        if one.copies > 1 and one.gib >= _LARGE_GIB:
            yield Fault(one.loc, f"{one}, where one sequence has {one.gib / one.copies:.3g}")


@check(
    "GB123",
    "warning",
    "axes that take days",
    remedy="Shorten the largest axis, take fewer steps, or run it on a GPU and say so in an ignore comment.",
    of_machine=True,
)
def days(subject: Subject) -> Iterator[Fault]:
    """The axes of an entry multiply. It is found where an entry takes more than 24 hours, by the mean time of its
    blocks on record, and where there are none by a rough model: the arithmetic of its cells at 20 GFLOP/s a core, which
    is within a factor of four of this project's records on 2 CPU cores. Trainings run on all cores, costs on one."""
    for entry in subject.entries:
        found = price(subject, entry)
        if found.hours > _DAY:
            yield Fault(entry.loc, str(found))


def _largest(subject: Subject) -> Iterator[Matrix]:
    """The largest matrices of each encoding in each entry."""
    for cost in subject.costs:
        dense = [name for name in cost.grid.backends if _dense(subject, name)]
        whole = any(not subject.plugins["metrics"][one].facts["decodes"] for one in cost.grid.metrics)
        for member in cost.members if dense and whole else ():
            yield _matrix(member, dense[0], max(cost.grid.batch), max(cost.grid.heads), max(cost.grid.lengths))
    for training in subject.trainings:
        grid, heads = training.grid, training.grid.model.heads
        for member in training.members if _dense(subject, grid.backend) else ():
            yield _matrix(member, grid.backend, grid.training.batch, heads, grid.train_length)
            yield _matrix(member, grid.backend, 1, heads, max(grid.test_lengths))  # long tests come singly


def _matrix(member: Member, backend: str, batch: int, heads: int, length: int) -> Matrix:
    seen = member.portrait
    return Matrix(member.loc, seen.text, backend, seen.matrices(batch), heads, length)


def _dense(subject: Subject, backend: str) -> bool:
    return bool(subject.plugins["backends"][backend].facts.get("dense"))
