"""Short text against a reader that was written from the rules, not from the generator."""

import pytest
import torch

from grape_bench.errors import Unsupported
from grape_bench.tasks import load

NAMES, VERBS, ACTIVE, OBJECTS = range(2, 10), range(10, 14), range(10, 12), range(14, 20)
TOPICS = range(20, 30), range(30, 40)
COUNT = 400


def batch(text: str, length: int, seed: int = 0):
    return load(text).batch(COUNT, length, torch.Generator().manual_seed(seed))


def read(body: list[int]) -> dict[int, tuple[int, int]]:
    """Giver and receiver of each object: the names on either side of the verb before it."""
    told = {}
    for place, token in enumerate(body):
        if token not in OBJECTS:
            continue
        before = [one for one in body[:place] if one in NAMES or one in VERBS]
        first, verb, second = before[-3:]
        assert first in NAMES
        assert verb in VERBS
        assert second in NAMES
        told[token] = (first, second) if verb in ACTIVE else (second, first)
    return told


@pytest.mark.parametrize("text", ["short_text", "short_text(sentences=2, bystanders=1)", "short_text(voice=True)"])
@pytest.mark.parametrize("length", [32, 48])
def test_a_reader_agrees_with_every_label(text, length):
    made = batch(text, length)
    tail = made.labels.shape[1]
    for tokens, labels in zip(made.tokens.tolist(), made.labels.tolist(), strict=True):
        body, asked = tokens[:-tail], tokens[-tail:]
        told = read(body)
        for thing, kind, label in zip(asked[1:], made.kinds[1:].tolist(), labels[1:], strict=True):
            assert label == told[thing][kind - 1] - NAMES.start + 2
        counts = [sum(one in words for one in body) for words in TOPICS]
        assert counts[0] == counts[1] or labels[0] == counts.index(max(counts))


def test_givers_and_topics_are_balanced():
    made = [batch("short_text", 48, seed) for seed in range(5)]
    labels = torch.cat([one.labels for one in made])
    counts = labels[:, 1:].flatten().bincount(minlength=10)[2:] / labels[:, 1:].numel()
    assert counts.min() > 0.10
    assert counts.max() < 0.15
    assert 0.45 < labels[:, 0].float().mean() < 0.55


def test_passive_verbs_appear_only_when_asked_for():
    assert not any(token in (12, 13) for row in batch("short_text", 48).tokens.tolist() for token in row)
    assert any(token in (12, 13) for row in batch("short_text(voice=True)", 48).tokens.tolist() for token in row)


def test_every_name_of_a_text_is_another():
    for row in batch("short_text", 48).tokens.tolist():
        names = [token for token in row if token in NAMES]
        assert len(names) == len(set(names)) == 4


@pytest.mark.parametrize("text", ["short_text(sentences=5)", "short_text(sentences=0)", "short_text(bystanders=9)"])
def test_more_people_than_names_are_refused(text):
    with pytest.raises(Unsupported, match="8 names"):
        load(text)


def test_a_length_without_room_is_refused():
    with pytest.raises(Unsupported, match="do not fit"):
        batch("short_text", 20)
