"""The contract of a task: a body, a tail of questions, and a label at every tail position.

Shapes: B sequences, n tokens of each, m of them the tail.
A file of this folder is a task of its name; its last line is `PLUGIN = Class`.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from grape_bench.errors import Unsupported
from grape_bench.expression import Expression
from grape_bench.registry import Registry


@dataclass(frozen=True)
class Batch:
    """Sequences of one length, without padding.

    Args:
        tokens: (B, n) ids.
        labels: (B, m) answer ids of the last m positions.
        groups: (m,) the index in `Task.groups` that each tail position belongs to.
        kinds: (m,) segment ids of the tail, in a task whose questions use words of the body; None otherwise.
    """

    tokens: Tensor
    labels: Tensor
    groups: Tensor
    kinds: Tensor | None = None

    @property
    def data(self) -> bytes:
        """Tokens and labels as bytes, for a hash."""
        return self.tokens.cpu().numpy().tobytes() + self.labels.cpu().numpy().tobytes()


@dataclass(frozen=True)
class Group:
    """Questions of one kind, whose accuracy is reported apart.

    Args:
        blind: the accuracy that a reader without positions can reach; chance: that of guessing.
        blind_nats: the loss of such a reader a question, in a task that is judged by its loss; None elsewhere.
    """

    name: str
    blind: float
    chance: float
    blind_nats: float | None = None


class Task:
    """Makes sequences from a generator, with questions whose answers are known.

    Class attributes are declared facts: `version` is raised when a sequence would change, `headline` names the group
    that stands for the task, `asks` all groups where options do not decide them, `column` the article's column that it
    fills, if any, and `domain` is `causal` where a model that sees ahead would see the answers.

    An instance's `digest` is that of the text that its sequences are cut from; empty where it makes them up.
    """

    version = 1
    headline = ""
    asks: tuple[str, ...] = ()
    column = ""
    domain = "both"

    digest = ""

    vocabulary: int
    answers: int
    kinds: int = 0
    groups: tuple[Group, ...]

    def batch(self, count: int, length: int, generator: torch.Generator) -> Batch:
        """`count` sequences of `length` tokens, on the generator's device.

        Raises:
            Unsupported: the length has no room for what the task writes.
        """
        raise NotImplementedError

    def held_out(self, count: int, length: int, generator: torch.Generator) -> Batch:
        """Sequences to test with. Made-up ones never come twice, so that only a task that cuts a text has others."""
        return self.batch(count, length, generator)


def shuffles(count: int, rows: int, size: int, generator: torch.Generator) -> Tensor:
    """Uniform permutations of 0 .. size - 1, shape (count, rows, size)."""
    return torch.rand(count, rows, size, generator=generator, device=generator.device).argsort(dim=-1)


def spread(count: int, spans: int, width: int, room: tuple[int, int], generator: torch.Generator) -> Tensor:
    """Starts (count, spans) of spans that do not overlap, in order, drawn in [low, high).

    Args:
        width: tokens of a span; room: (low, high).

    Raises:
        Unsupported: the spans do not fit.
    """
    low, high = room
    free = high - low - spans * width
    if free < 0:
        raise Unsupported(f"{spans} spans of {width} tokens do not fit into {high - low}")
    draws = torch.randint(0, free + 1, (count, spans), generator=generator, device=generator.device)
    return draws.sort(dim=1).values + low + width * torch.arange(spans, device=generator.device)


def load(text: str) -> Task:
    """The task that an expression of one part names, such as `registers(writes=4)`.

    Raises:
        UserError: there is no such task, or it has no such option.
    """
    registry = Registry("tasks")
    (part,) = Expression.parse(text, registry).parts
    task = registry[part.name].load()(**dict(part.options))
    assert isinstance(task, Task)
    return task
