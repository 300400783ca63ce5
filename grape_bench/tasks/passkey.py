"""Passkey: find a number in a long text, among others like it."""

import torch
from torch import Tensor

from grape_bench.errors import Unsupported
from grape_bench.tasks import Batch, Group, Task, shuffles, spread

_DIGITS, _FILLERS = 10, 32
_KEY, _NOTE, _NEXT = _DIGITS + _FILLERS, _DIGITS + _FILLERS + 1, _DIGITS + _FILLERS + 2


class Passkey(Task):
    """A number stands after its mark in a long filler, with notes of other numbers; the tail, one token over and over,
    asks for the number after the mark.

        body   . . note 3 9 1 . . . key 9 1 3 . . . . .     tail   next?   next?   next?
        label                                                        9       1       3

    The digits of a number are all different, and a note has the same ones in an order of its own: chance is 1/10, and
    without positions each digit is as likely, 1 / digits, exactly. Longer sequences have more filler.

    Args:
        digits: of a number, from 2 to 10; notes: numbers beside the key.

    Raises:
        Unsupported: another number of digits or notes, or a length without room for the numbers.

    Source: ours, after passkey retrieval, Mohtashami and Jaggi 2023, arXiv:2305.16300, section 4.2.
    """

    headline = "passkey"
    asks = ("passkey",)
    vocabulary = _NEXT + 1
    answers = _DIGITS

    def __init__(self, *, digits: int = 5, notes: int = 1):
        if not 2 <= digits <= _DIGITS or notes < 0:
            raise Unsupported(f"passkey(digits={digits}, notes={notes}): there are 2 to 10 digits and 0 notes or more")
        self.digits, self.notes = digits, notes
        self.groups = (Group("passkey", 1 / digits, 1 / _DIGITS),)

    def batch(self, count: int, length: int, generator: torch.Generator) -> Batch:
        device, digits, numbers = generator.device, self.digits, 1 + self.notes
        tokens = _DIGITS + torch.randint(0, _FILLERS, (count, length), generator=generator, device=device)
        starts = spread(count, numbers, 1 + digits, (0, length - digits), generator)
        starts = starts.gather(1, shuffles(count, 1, numbers, generator)[:, 0])  # the first is the key
        written = self._numbers(count, generator)
        marks = torch.full((count, numbers), _NOTE, device=device)
        marks[:, 0] = _KEY
        tokens.scatter_(1, starts, marks)
        places = starts[..., None] + torch.arange(1, digits + 1, device=device)
        tokens.scatter_(1, places.flatten(1), written.flatten(1))
        tokens[:, -digits:] = _NEXT
        return Batch(tokens, written[:, 0], torch.zeros(digits, dtype=torch.long, device=device))

    def _numbers(self, count: int, generator: torch.Generator) -> Tensor:
        """Digits (B, 1 + notes, digits): the same different ones, each number in an order of its own."""
        pool = shuffles(count, 1, _DIGITS, generator)[:, :, : self.digits].expand(-1, 1 + self.notes, -1)
        return pool.gather(2, shuffles(count, 1 + self.notes, self.digits, generator))


PLUGIN = Passkey
