"""Registers: which digit was written last? Task C, long-range numeric reasoning."""

import torch
from torch import Tensor

from grape_bench.errors import Unsupported
from grape_bench.tasks import Batch, Group, Task, shuffles, spread

_FILLERS = 16
_DIGITS = 10


class Registers(Task):
    """Digits are written to registers among filler; the tail asks for last values, and compares two.

        body   . . a=3 . b=1 . . a=1 . . b=3 .     tail   ask a   cmp b   ask b   cmp a
        label                                              1       0       3       1

    `ask u` asks for the value that u was last given (group recall). `cmp v` after it asks whether u's last value is
    greater than v's (group cmp). Every register receives the same digits in an order of its own, so that the bag of
    writes says nothing about which came last: without positions recall is 1 / writes and cmp one half, exactly.

    Longer sequences come in two regimes. `stretch`: as many writes, so that all gaps grow. `extend`: as many writes a
    token, so that near gaps stay as they were and there are more of them, as in a longer real text:

        extend, twice as long   . b=3 a=1 . b=1 . a=3 a=1 . b=3 . a=3 . b=1   last   a: 3   b: 1

    Each of a register's W digits is then written r times, as often as the others, and blind stays as it is.

    Args:
        registers: number k; writes: number W of different digits for each, at most 10; pairs: number of `ask cmp`
            pairs in the tail.
        extend: tokens of a sequence for each round of k W writes, such as the training length: r is the nearest
            number of rounds, and at least 1. None stretches.

    Raises:
        Unsupported: a length below r k W + 2 pairs.

    Source: ours, for the article's task of long-range numeric reasoning.
    """

    headline = "recall"
    asks = ("recall", "cmp")
    column = "C"

    def __init__(self, *, registers: int = 4, writes: int = 3, pairs: int = 6, extend: int | None = None):
        if registers < 2 or not 2 <= writes <= _DIGITS or pairs < 1:
            raise Unsupported(
                f"registers(registers={registers}, writes={writes}, pairs={pairs}): there are at least 2 registers, "
                f"2 to {_DIGITS} writes and 1 pair"
            )
        if extend is not None and extend < 1:
            raise Unsupported(f"registers(extend={extend}): a round of writes takes at least 1 token")
        self.registers, self.writes, self.pairs, self.extend = registers, writes, pairs, extend
        # Ids: registers x digits write tokens, then `ask`, then `cmp`, then filler.
        self.ask = registers * _DIGITS
        self.filler = self.ask + 2 * registers
        self.vocabulary = self.filler + _FILLERS
        self.answers = _DIGITS + 2  # a digit, or no / yes
        self.groups = (Group("recall", 1 / writes, 1 / _DIGITS), Group("cmp", 0.5, 0.5))

    def batch(self, count: int, length: int, generator: torch.Generator) -> Batch:
        body, rounds = length - 2 * self.pairs, self._rounds(length)
        writes = rounds * self.registers * self.writes
        if body < writes:
            least = writes + 2 * self.pairs
            raise Unsupported(f"registers needs at least {least} tokens for its writes and questions, got {length}")
        device = generator.device
        values = self._values(count, rounds, generator)  # (B, k, r W)
        tokens = torch.randint(self.filler, self.vocabulary, (count, length), generator=generator, device=device)
        places = spread(count, writes, 1, (0, body), generator)
        tokens.scatter_(1, places, self._writes(values, generator))
        asked, answers = self._questions(values[:, :, -1], generator)
        tokens[:, body:] = asked
        groups = torch.tensor([0, 1], device=device).repeat(self.pairs)
        return Batch(tokens, answers, groups)

    def _rounds(self, length: int) -> int:
        return 1 if self.extend is None else max(1, round(length / self.extend))

    def _values(self, count: int, rounds: int, generator: torch.Generator) -> Tensor:
        """Digits (B, k, r W) by register and write: one pool of W digits a sequence, each register in its own order."""
        pool = shuffles(count, 1, _DIGITS, generator)[:, :, : self.writes].repeat(1, self.registers, rounds)
        values = pool.gather(2, shuffles(count, self.registers, rounds * self.writes, generator))
        # If all last digits are equal there is nothing to compare: rotate the first register's order until one differs.
        while (equal := (values[:, :, -1] == values[:, :1, -1]).all(dim=1)).any():
            values[equal, 0] = values[equal, 0].roll(1, dims=-1)
        return values

    def _writes(self, values: Tensor, generator: torch.Generator) -> Tensor:
        """Write tokens (B, r k W) in the order of the sequence: registers in random order, a register's in turn."""
        count = values.shape[0]
        owner = shuffles(count, 1, values[0].numel(), generator)[:, 0] % self.registers
        turn = torch.zeros_like(owner)
        for register in range(self.registers):
            mine = owner == register
            turn += (mine.cumsum(dim=1) - 1) * mine
        rows = torch.arange(count, device=values.device)[:, None]
        return owner * _DIGITS + values[rows, owner, turn]

    def _questions(self, last: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Tail tokens and labels, both (B, 2 pairs): ordered pairs of registers whose last digits differ."""
        k = last.shape[1]
        differ = (last[:, :, None] != last[:, None, :]).flatten(1).float()
        drawn = differ.multinomial(self.pairs, replacement=True, generator=generator)
        first, second = drawn // k, drawn % k
        left, right = last.gather(1, first), last.gather(1, second)
        asked = torch.stack((self.ask + first, self.ask + k + second), dim=-1).flatten(1)
        answers = torch.stack((left, _DIGITS + (left > right).long()), dim=-1).flatten(1)
        return asked, answers


PLUGIN = Registers
