"""Background text of a topic: what the two text tasks are written on."""

import torch
from torch import Tensor


def background(
    count: int, length: int, vocabulary: tuple[int, int, int], rates: tuple[float, float], generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Topic and neutral words (count, length), and the topic (count,), 0 or 1, of each text.

    Args:
        vocabulary: id of the first topic word, of the first neutral word, and the end. The first half of the topic
            words belongs to topic 0.
        rates: of topic words among all, and of the text's own topic among these.
    """
    first, neutral, end = vocabulary
    half, device = (neutral - first) // 2, generator.device
    topic = torch.randint(0, 2, (count,), generator=generator, device=device)
    draws = torch.rand(3, count, length, generator=generator, device=device)
    own = torch.where(draws[1] < rates[1], topic[:, None], 1 - topic[:, None])
    words = first + own * half + (draws[2] * half).long()
    other = neutral + (draws[2] * (end - neutral)).long()
    return torch.where(draws[0] < rates[0], words, other), topic


def majority(tokens: Tensor, first: int, neutral: int, drawn: Tensor) -> Tensor:
    """The topic (count,) with more words in the text; the drawn one where they tie."""
    half = (neutral - first) // 2
    zero = ((tokens >= first) & (tokens < first + half)).sum(dim=1)
    one = ((tokens >= first + half) & (tokens < neutral)).sum(dim=1)
    return torch.where(zero == one, drawn, (one > zero).long())
