"""Copy against a reader written as a loop, and a reader of the bag."""

import math
from collections.abc import Callable

import pytest
import torch

from grape_bench.errors import Unsupported
from grape_bench.tasks import Batch
from grape_bench.tasks.copy import Copy

SYMBOLS, QUESTION = range(32), 48


def make(task: Copy, count: int, length: int = 48, seed: int = 0) -> Batch:
    return task.batch(count, length, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("symbols", "length"), [(8, 48), (8, 16), (2, 30), (32, 70)])
def test_a_reader_agrees_with_every_label(symbols: int, length: int, reverse: bool) -> None:
    batch = make(Copy(symbols=symbols, reverse=reverse), 100, length)
    for tokens, labels in zip(batch.tokens.tolist(), batch.labels.tolist(), strict=True):
        said = [token for token in tokens if token in SYMBOLS]
        assert labels == (said[::-1] if reverse else said)
        assert tokens[-symbols:] == [QUESTION] * symbols


def test_a_string_is_of_one_piece_and_of_different_symbols() -> None:
    starts = set()
    for tokens in make(Copy(), 200).tokens.tolist():
        places = [place for place, token in enumerate(tokens) if token in SYMBOLS]
        assert places == list(range(places[0], places[0] + 8))
        assert len({tokens[place] for place in places}) == 8
        starts.add(places[0])
    assert (min(starts), max(starts)) == (0, 48 - 16)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_reader_of_the_bag_is_right_once_in_as_many_as_there_are_symbols(
    reverse: bool, bag_share: Callable[..., float]
) -> None:
    task = Copy(reverse=reverse)
    (group,) = task.groups
    assert (group.blind, group.chance) == (1 / 8, 1 / 32)
    got = bag_share(make(task, 8000), lambda bag: [one for one in bag if one in SYMBOLS])
    assert got == pytest.approx(group.blind, abs=4 * math.sqrt(group.blind * (1 - group.blind) / 4000))


@pytest.mark.parametrize("symbols", [1, 33])
def test_a_string_that_it_cannot_write_is_unsupported(symbols: int) -> None:
    with pytest.raises(Unsupported, match="32 symbols"):
        Copy(symbols=symbols)


def test_the_shortest_length_is_its_string_and_questions() -> None:
    with pytest.raises(Unsupported, match="at least 16"):
        make(Copy(), 2, 15)
