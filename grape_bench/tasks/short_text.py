"""Short text: who gave what to whom? Task A, classification that depends on word order."""

import torch
from torch import Tensor

from grape_bench.errors import Unsupported
from grape_bench.tasks import Batch, Group, Task, shuffles, spread
from grape_bench.tasks._words import background, majority

_TOPIC = 1  # the question for the topic
_NAMES, _VERBS, _OBJECTS, _WORDS, _NEUTRAL, _END = 2, 10, 14, 20, 40, 60
_SPAN = 6  # tokens in which a sentence's four words stand, in order
_RATES = (0.4, 0.75)


class ShortText(Task):
    """Sentences `name verb name object` and lone names among words of a topic; the tail asks for the parts.

        body   . . anna . gave ben cup . . carl . .     tail   topic?   cup/giver   cup/receiver
        label                                                    0         anna         ben

    Group bow is the text's topic, which a bag of words gives away. Group order asks who gave and who received: without
    positions every name is as likely, and who knows the neighbours of a verb but not their side is right half the time.

    Args:
        sentences: number S; bystanders: lone names, so that blind order is 1 / (2 S + bystanders).
        voice: half of the verbs are passive, and swap giver and receiver.

    Raises:
        Unsupported: more names or objects than there are, or a length without room for the sentences.

    Source: ours, for the article's task of short text classification.
    """

    headline = "order"
    asks = ("bow", "order")
    column = "A"
    vocabulary = _END
    answers = 2 + _VERBS - _NAMES  # a topic or a name
    kinds = 3  # of a question: topic, giver, receiver

    def __init__(self, *, sentences: int = 1, bystanders: int = 2, voice: bool = False):
        people, known = 2 * sentences + bystanders, _VERBS - _NAMES
        if sentences < 1 or bystanders < 0 or people > known or sentences > _WORDS - _OBJECTS:
            raise Unsupported(
                f"short_text has {known} names, and {sentences} sentences with {bystanders} bystanders need {people}"
            )
        self.sentences, self.bystanders, self.voice = sentences, bystanders, voice
        self.groups = (Group("bow", 1.0, 0.5), Group("order", 1 / people, 1 / known))

    def batch(self, count: int, length: int, generator: torch.Generator) -> Batch:
        device, spans = generator.device, self.sentences + self.bystanders
        body = length - 1 - 2 * self.sentences
        tokens, drawn = background(count, length, (_WORDS, _NEUTRAL, _END), _RATES, generator)
        starts = spread(count, spans, _SPAN, (0, body), generator)
        starts = starts.gather(1, shuffles(count, 1, spans, generator)[:, 0])  # which span is a sentence
        names = _NAMES + shuffles(count, 1, _VERBS - _NAMES, generator)[:, 0]
        objects = _OBJECTS + shuffles(count, 1, _WORDS - _OBJECTS, generator)[:, 0, : self.sentences]
        verbs = _VERBS + torch.randint(0, 4 if self.voice else 2, objects.shape, generator=generator, device=device)
        pairs = names[:, : 2 * self.sentences].unflatten(1, (self.sentences, 2))
        self._write(tokens, starts, torch.stack((pairs[..., 0], verbs, pairs[..., 1], objects), dim=-1), generator)
        lone = starts[:, self.sentences :] + torch.randint(
            0, _SPAN, (count, self.bystanders), generator=generator, device=device
        )
        tokens.scatter_(1, lone, names[:, 2 * self.sentences : 2 * self.sentences + self.bystanders])
        tokens[:, body:] = torch.cat(
            (torch.full_like(drawn, _TOPIC)[:, None], objects.repeat_interleave(2, dim=1)), dim=1
        )
        people = torch.where(verbs[..., None] >= _VERBS + 2, pairs.flip(-1), pairs).flatten(1) - _NAMES + 2
        labels = torch.cat((majority(tokens[:, :body], _WORDS, _NEUTRAL, drawn)[:, None], people), dim=1)
        kinds = torch.tensor([0, *[1, 2] * self.sentences], device=device)
        return Batch(tokens, labels, kinds.clamp(max=1), kinds)

    def _write(self, tokens: Tensor, starts: Tensor, words: Tensor, generator: torch.Generator) -> None:
        """Put the four words (B, S, 4) of each sentence into four of its span's slots, in order."""
        slots = shuffles(len(tokens), self.sentences, _SPAN, generator)[..., :4].sort(dim=-1).values
        places = starts[:, : self.sentences, None] + slots
        tokens.scatter_(1, places.flatten(1), words.flatten(1))


PLUGIN = ShortText
