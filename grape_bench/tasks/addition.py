"""Addition: the digits of a sum, the ones first."""

import torch
from torch import Tensor

from grape_bench.errors import Unsupported
from grape_bench.tasks import Batch, Group, Task, spread

_DIGITS, _FILLERS = 10, 16
_PLUS, _NEXT = _DIGITS + _FILLERS, _DIGITS + _FILLERS + 1
# How many of all 10^(2 digits) pairs a reader of the bag gets right, by the number of digits: summed over the digits of
# the sum, and of the carry.
_BLIND = {2: (6_151, 7_975), 3: (636_960, 729_260), 4: (69_542_653, 69_241_563)}


class Addition(Task):
    """A sum of two numbers of equal width stands among filler; the tail, one token over and over, asks for its digits
    from the ones up, and at last for the carry that remains.

        body   . . 0 7 4 + 2 5 8 . . .     tail   next?   next?   next?   next?
        label                                       2       3       3      no

    Numbers are filled up with zeros, so that digits of one column always stand `digits` + 1 tokens apart. Group digit
    is each digit of the sum, group carry whether it has one more. Chance is 1/10 and one half. Without positions a
    reader knows which digits there are and not where they belong; the best is right in 0.308 of the digits and 0.798
    of the carries of 2-digit numbers, 0.212 and 0.729 of 3, 0.174 and 0.692 of 4. Longer inputs have more filler.

    Args:
        digits: of each number, 2, 3 or 4.

    Raises:
        Unsupported: another number of digits, or a length without room for numbers and questions.

    Source: ours, with aligned digits after Shen et al. 2023, arXiv:2311.14737, section 3.
    """

    headline = "digit"
    asks = ("digit", "carry")
    vocabulary = _NEXT + 1
    answers = _DIGITS + 2  # a digit, or no / yes

    def __init__(self, *, digits: int = 3):
        if digits not in _BLIND:
            raise Unsupported(f"addition is of numbers of {', '.join(map(str, _BLIND))} digits, got {digits}")
        self.digits = digits
        right, carries = _BLIND[digits]
        pairs = 10 ** (2 * digits)
        self.groups = (Group("digit", right / (digits * pairs), 1 / _DIGITS), Group("carry", carries / pairs, 0.5))

    def batch(self, count: int, length: int, generator: torch.Generator) -> Batch:
        device, digits = generator.device, self.digits
        body, width = length - digits - 1, 2 * digits + 1
        tokens = _DIGITS + torch.randint(0, _FILLERS, (count, length), generator=generator, device=device)
        start = spread(count, 1, width, (0, body), generator)
        numbers = torch.randint(0, 10**digits, (count, 2), generator=generator, device=device)
        first, second = (self._written(numbers[:, [place]]) for place in (0, 1))
        plus = torch.full((count, 1), _PLUS, device=device)
        piece = torch.cat((first.flip(1), plus, second.flip(1)), dim=1)
        tokens.scatter_(1, start + torch.arange(width, device=device), piece)
        tokens[:, body:] = _NEXT
        total = numbers.sum(dim=1, keepdim=True)
        labels = torch.cat((self._written(total), _DIGITS + total // 10**digits), dim=1)
        groups = torch.tensor([0] * digits + [1], device=device)
        return Batch(tokens, labels, groups)

    def _written(self, number: Tensor) -> Tensor:
        """The lowest digits (B, digits) of numbers (B, 1), the ones first."""
        return number // 10 ** torch.arange(self.digits, device=number.device) % 10


PLUGIN = Addition
