"""Text: which byte comes next? A language model on real text."""

import torch
from torch import Tensor

from grape_bench.errors import Unsupported
from grape_bench.tasks import Batch, Group, Task
from grape_bench.tasks._corpus import Corpus, of_file, of_python

_BYTES = 256
_END = 32  # tokens whose loss stands for the task
_FIRST, _BUCKETS = 32, 12  # positions of the first bucket; each of the next ones holds as many as lie before it


class Text(Task):
    """Windows of a text; the label of each byte is the byte after it, and the figure is the loss in nats a byte.

        tokens  d e f   p a r s e ( t e x t ,   e n c
        label   e f   p a r s e ( t e x t ,   e n c o
        group   0-31 . . . . 32-63 . . . 64-127 . . end

    Group end holds the last 32 labels, the others the labels before these by their position. Tests ask for the same
    last bytes at every length and every seed, so that a longer input adds context and nothing else. The text is closed
    to a ring. Training and test text are disjoint: other files, or the last tenth of a user's file.

    Chance is ln 256 = 5.55 nats, and 1/256 right. Blind is a byte unigram of the training text: 3.12 nats on the
    sources of Python 3.11. Who reads the bag of the 128 bytes before adapts to it, and gains a tenth of a nat, no more.

    The default text is the sources of Python's standard library, which every machine has and which differ from version
    to version. The text's hash is in each record, and figures on two texts are never pooled.

    Args:
        file: path of a text to use instead, read as bytes.

    Raises:
        Unsupported: a length of 32 and less, or beyond the text; or there is no such text.

    Source: ours. That a longer input must help, at equal targets: Press et al. 2022, arXiv:2108.12409, section 2.
    """

    headline = "end"
    asks = (
        "end", "0-31", "32-63", "64-127", "128-255", "256-511", "512-1023", "1024-2047", "2048-4095", "4096-8191",
        "8192-16383", "16384-32767", "32768-65535", "65536 on",
    )  # fmt: skip
    domain = "causal"
    vocabulary = answers = _BYTES

    def __init__(self, *, file: str | None = None):
        corpus = of_python() if file is None else of_file(file)
        self.digest = corpus.digest
        self._train, self._test = (torch.frombuffer(one, dtype=torch.uint8) for one in (corpus.train, corpus.test))
        right, nats = _unigram(corpus)
        self.groups = tuple(Group(name, right, 1 / _BYTES, nats) for name in self.asks)

    def batch(self, count: int, length: int, generator: torch.Generator) -> Batch:
        size = len(self._train)
        ends = torch.randint(0, size, (count,), generator=generator, device=generator.device)
        return _cut(self._train, ends, length)

    def held_out(self, count: int, length: int, generator: torch.Generator) -> Batch:
        """Windows that end at places spread evenly over the test text, the same for every length and generator."""
        ends = torch.arange(count, device=generator.device) * len(self._test) // count
        return _cut(self._test, ends, length)


def _cut(text: Tensor, ends: Tensor, length: int) -> Batch:
    """Windows whose last labels stand at `ends` (B,)."""
    if not _END < length < len(text):
        raise Unsupported(f"text is cut into more than {_END} and fewer than {len(text)} tokens, got {length}")
    device = ends.device
    places = (ends[:, None] + torch.arange(-length, 1, device=device)) % len(text)
    window = text.to(device)[places].long()
    position = torch.arange(length, device=device)
    bounds = _FIRST * 2 ** torch.arange(_BUCKETS, device=device)
    groups = 1 + torch.bucketize(position, bounds, right=True)
    groups[-_END:] = 0
    return Batch(window[:, :-1], window[:, 1:], groups)


def _unigram(corpus: Corpus) -> tuple[float, float]:
    """Share of right answers, and nats a byte, of the training text's byte frequencies on the test text."""
    counts, seen = (
        torch.frombuffer(one, dtype=torch.uint8).long().bincount(minlength=_BYTES).double()
        for one in (corpus.train, corpus.test)
    )
    rates, shares = (counts + 1) / (counts.sum() + _BYTES), seen / seen.sum()
    return shares[counts.argmax()].item(), -(shares * rates.log()).sum().item()


PLUGIN = Text
