"""Long text: which event came before the landmark? Task B, dependencies across paragraphs."""

import torch
from torch import Tensor

from grape_bench.errors import Unsupported
from grape_bench.tasks import Batch, Group, Task, shuffles, spread
from grape_bench.tasks._words import background, majority

_TOPIC, _FIRST, _LAST, _PARAGRAPH, _LANDMARK, _EVENTS = 1, 2, 3, 4, 5, 6
_TOPIC_WORDS, _NEUTRAL_WORDS = 20, 40
_RATES = (0.3, 0.65)


class LongText(Task):
    """Paragraphs with one event each, one paragraph under a landmark; the tail asks what came where.

        body   # . e3 . . # . . e1 . @ e2 . . . # . e0      tail   topic?  first?  last?   e1      e0
        label                                                        1       e3      e0   before  after

    Group bow is the topic, group edge the first and the last event, group order whether an event came before or after
    the landmark's heading. Blind: 1, 1 / paragraphs and one half; who knows each event's rank but not the landmark's
    reaches 0.80 of order with six paragraphs, so that more than this proves that relative places are read.

    Args:
        paragraphs: number K, of events as well.

    Raises:
        Unsupported: a length without room for the paragraphs.

    Source: ours, for the article's task of skimming long text.
    """

    headline = "order"
    asks = ("bow", "edge", "order")
    column = "B"
    kinds = 2  # of a question: a word of its own, or an event from the body

    def __init__(self, *, paragraphs: int = 6):
        if paragraphs < 2:
            raise Unsupported(f"long_text needs at least 2 paragraphs, got {paragraphs}")
        self.paragraphs = paragraphs
        self._words = _EVENTS + paragraphs
        self.vocabulary = self._words + _TOPIC_WORDS + _NEUTRAL_WORDS
        self.answers = 2 + paragraphs + 2  # a topic, an event, before or after
        self.groups = (Group("bow", 1.0, 0.5), Group("edge", 1 / paragraphs, 1 / paragraphs), Group("order", 0.5, 0.5))

    def batch(self, count: int, length: int, generator: torch.Generator) -> Batch:
        device, k = generator.device, self.paragraphs
        body = length - 3 - k
        words = (self._words, self._words + _TOPIC_WORDS, self.vocabulary)
        tokens, drawn = background(count, length, words, _RATES, generator)
        starts, landmark = self._headings(tokens, body, generator)
        events = shuffles(count, 1, k, generator)[:, 0]  # by paragraph
        room = torch.cat((starts[:, 1:], starts.new_full((count, 1), body)), dim=1) - starts - 1
        slots = (torch.rand(count, k, generator=generator, device=device) * room).long()
        tokens.scatter_(1, starts + 1 + slots, _EVENTS + events)
        asked = shuffles(count, 1, k, generator)[:, 0]  # events in a new order
        own = torch.tensor([_TOPIC, _FIRST, _LAST], device=device).expand(count, -1)
        tokens[:, body:] = torch.cat((own, _EVENTS + asked), dim=1)
        paragraph = events.argsort(dim=1).gather(1, asked)
        topic = majority(tokens[:, :body], words[0], words[1], drawn)
        after = 2 + k + (paragraph >= landmark[:, None]).long()
        labels = torch.cat((torch.stack((topic, 2 + events[:, 0], 2 + events[:, -1]), dim=1), after), dim=1)
        groups = torch.tensor([0, 1, 1, *[2] * k], device=device)
        return Batch(tokens, labels, groups, (groups == 2).long())

    def _headings(self, tokens: Tensor, body: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Write the headings; starts (B, K) of the paragraphs, and which of them, not the first, is the landmark."""
        count, k = len(tokens), self.paragraphs
        least = max(3, body // (3 * k))
        rest = spread(count, k - 1, least, (least, body), generator)
        starts = torch.cat((torch.zeros_like(rest[:, :1]), rest), dim=1)
        landmark = torch.randint(1, k, (count,), generator=generator, device=generator.device)
        tokens.scatter_(1, starts, _PARAGRAPH)
        tokens.scatter_(1, starts.gather(1, landmark[:, None]), _LANDMARK)
        return starts, landmark


PLUGIN = LongText
