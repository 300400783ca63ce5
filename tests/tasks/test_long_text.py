"""Long text against a reader that was written from the rules, not from the generator."""

import pytest
import torch

from grape_bench.errors import Unsupported
from grape_bench.tasks import load

HEADING, LANDMARK, FIRST_EVENT = 4, 5, 6


def batch(text: str, length: int, count: int = 300):
    return load(text).batch(count, length, torch.Generator().manual_seed(0))


@pytest.mark.parametrize(("paragraphs", "length"), [(6, 64), (6, 200), (3, 40)])
def test_a_reader_agrees_with_every_label(paragraphs, length):
    made = batch(f"long_text(paragraphs={paragraphs})", length)
    tail = 3 + paragraphs
    for tokens, labels in zip(made.tokens.tolist(), made.labels.tolist(), strict=True):
        body, asked = tokens[:-tail], tokens[-tail:]
        events = [(place, one) for place, one in enumerate(body) if FIRST_EVENT <= one < FIRST_EVENT + paragraphs]
        headings = [place for place, one in enumerate(body) if one in (HEADING, LANDMARK)]
        assert headings[0] == 0
        assert len(headings) == len(events) == paragraphs
        assert body.count(LANDMARK) == 1
        # One event in each paragraph.
        assert all(start < place for start, (place, _) in zip(headings, events, strict=True))
        assert all(place < end for end, (place, _) in zip(headings[1:], events, strict=False))
        assert asked[:3] == [1, 2, 3]
        assert labels[1] == 2 + events[0][1] - FIRST_EVENT
        assert labels[2] == 2 + events[-1][1] - FIRST_EVENT
        mark, where = body.index(LANDMARK), {event: place for place, event in events}
        assert labels[3:] == [2 + paragraphs + (where[event] > mark) for event in asked[3:]]


def test_before_and_after_are_balanced():
    labels = batch("long_text", 96, 4000).labels[:, 3:]
    assert abs((labels == 9).float().mean().item() - 0.5) < 0.02


def test_who_knows_ranks_but_not_the_landmark_reaches_four_fifths():
    # Event of rank r is before the landmark, uniform over 1 .. 5, with probability (5 - r) / 5: the best guess by rank.
    best = sum(max((5 - rank) / 5, rank / 5) for rank in range(6)) / 6
    assert best == pytest.approx(0.8)
    made = batch("long_text", 96, 4000)
    labels, tail = made.labels[:, 3:] - 8, made.tokens[:, -6:]
    rank = (made.tokens[:, :-9, None] == tail[:, None]).int().argmax(1).argsort(1).argsort(1)  # of each asked event
    guess = (rank >= 3).long()
    assert (guess == labels).float().mean().item() == pytest.approx(0.8, abs=0.02)


def test_a_length_without_room_is_refused():
    with pytest.raises(Unsupported, match="do not fit"):
        batch("long_text", 26)


def test_one_paragraph_is_refused():
    with pytest.raises(Unsupported, match="at least 2 paragraphs"):
        load("long_text(paragraphs=1)")
