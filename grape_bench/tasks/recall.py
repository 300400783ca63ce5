"""Recall: which value was paired with this key? Multi-query associative recall."""

import torch

from grape_bench.errors import Unsupported
from grape_bench.tasks import Batch, Group, Task, shuffles, spread

_KEYS, _VALUES, _FILLERS = 16, 16, 16


class Recall(Task):
    """Pairs `key value` stand among filler; the tail asks for the values of keys, each key once, in a new order.

        body   . . k3 v1 . k0 v7 . . . . k5 v2 .     tail   k0   k5   k3
        label                                               v7   v2   v1

    Keys and values of a sequence are all different, so that the bag of tokens holds each value once: chance is 1/16,
    and without positions each value of the bag is as likely, 1 / pairs, exactly. Longer sequences have as many pairs
    and more filler.

    Args:
        pairs: number of pairs, and of questions, from 2 to 16.

    Raises:
        Unsupported: another number of pairs, or a length below 3 pairs.

    Source: ours, after multi-query associative recall, Arora et al. 2024, arXiv:2312.04927, section 3.
    """

    headline = "recall"
    asks = ("recall",)
    kinds = 1  # a question is a key of the body
    vocabulary = _KEYS + _VALUES + _FILLERS
    answers = _VALUES

    def __init__(self, *, pairs: int = 8):
        if not 2 <= pairs <= min(_KEYS, _VALUES):
            raise Unsupported(f"recall has {min(_KEYS, _VALUES)} keys and values, and 2 pairs at least, got {pairs}")
        self.pairs = pairs
        self.groups = (Group("recall", 1 / pairs, 1 / _VALUES),)

    def batch(self, count: int, length: int, generator: torch.Generator) -> Batch:
        device, pairs = generator.device, self.pairs
        if length < 3 * pairs:
            raise Unsupported(f"recall needs at least {3 * pairs} tokens for {pairs} pairs and questions, got {length}")
        tokens = _KEYS + _VALUES + torch.randint(0, _FILLERS, (count, length), generator=generator, device=device)
        keys = shuffles(count, 1, _KEYS, generator)[:, 0, :pairs]
        values = shuffles(count, 1, _VALUES, generator)[:, 0, :pairs]
        places = spread(count, pairs, 2, (0, length - pairs), generator)
        tokens.scatter_(1, places, keys)
        tokens.scatter_(1, places + 1, _KEYS + values)
        asked = shuffles(count, 1, pairs, generator)[:, 0]
        tokens[:, -pairs:] = keys.gather(1, asked)
        groups = torch.zeros(pairs, dtype=torch.long, device=device)
        return Batch(tokens, values.gather(1, asked), groups, groups)


PLUGIN = Recall
