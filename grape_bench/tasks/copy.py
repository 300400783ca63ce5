"""Copy: say a string again, forwards or backwards."""

import torch

from grape_bench.errors import Unsupported
from grape_bench.tasks import Batch, Group, Task, shuffles, spread

_SYMBOLS, _FILLERS = 32, 16
_NEXT = _SYMBOLS + _FILLERS  # the question for the next symbol


class Copy(Task):
    """A string of symbols stands in one piece among filler; the tail, one token over and over, asks for it in order.

        body   . . . c a f d . . .     tail   next?   next?   next?   next?
        label                                   c       a       f       d
        reverse                                 d       f       a       c

    The questions look alike, so that only their places say which symbol is meant. The symbols of a string are all
    different: chance is 1/32, and without positions each of them is as likely, 1 / symbols, exactly. Longer sequences
    have as long a string and more filler.

    Args:
        symbols: number of symbols in the string, from 2 to 32.
        reverse: the last symbol first.

    Raises:
        Unsupported: another number of symbols, or a length below 2 symbols.

    Source: ours, after the copy task of Graves et al. 2014, arXiv:1410.5401, section 4.1.
    """

    headline = "copy"
    asks = ("copy",)
    vocabulary = _NEXT + 1
    answers = _SYMBOLS

    def __init__(self, *, symbols: int = 8, reverse: bool = False):
        if not 2 <= symbols <= _SYMBOLS:
            raise Unsupported(f"copy has {_SYMBOLS} symbols and a string takes at least 2 of them, got {symbols}")
        self.symbols, self.reverse = symbols, reverse
        self.groups = (Group("copy", 1 / symbols, 1 / _SYMBOLS),)

    def batch(self, count: int, length: int, generator: torch.Generator) -> Batch:
        device, symbols = generator.device, self.symbols
        if length < 2 * symbols:
            raise Unsupported(f"copy needs at least {2 * symbols} tokens for a string and its copy, got {length}")
        tokens = _SYMBOLS + torch.randint(0, _FILLERS, (count, length), generator=generator, device=device)
        string = shuffles(count, 1, _SYMBOLS, generator)[:, 0, :symbols]
        start = spread(count, 1, symbols, (0, length - symbols), generator)
        tokens.scatter_(1, start + torch.arange(symbols, device=device), string)
        tokens[:, -symbols:] = _NEXT
        groups = torch.zeros(symbols, dtype=torch.long, device=device)
        return Batch(tokens, string.flip(1) if self.reverse else string, groups)


PLUGIN = Copy
