"""Recall against a reader written as a loop, and a reader of the bag."""

import math
from collections.abc import Callable
from itertools import pairwise

import pytest
import torch

from grape_bench.errors import Unsupported
from grape_bench.tasks import Batch
from grape_bench.tasks.recall import Recall

KEYS, VALUES = range(16), range(16, 32)


def make(task: Recall, count: int, length: int = 48, seed: int = 0) -> Batch:
    return task.batch(count, length, torch.Generator().manual_seed(seed))


def read(tokens: list[int], pairs: int) -> list[int]:
    """The value right after each asked key, in the body."""
    body = tokens[:-pairs]
    after = {key: value for key, value in pairwise(body) if key in KEYS}
    return [after[key] - VALUES.start for key in tokens[-pairs:]]


@pytest.mark.parametrize(("pairs", "length"), [(8, 48), (8, 24), (2, 40), (16, 64)])
def test_a_reader_agrees_with_every_label(pairs: int, length: int) -> None:
    batch = make(Recall(pairs=pairs), 100, length)
    for tokens, labels in zip(batch.tokens.tolist(), batch.labels.tolist(), strict=True):
        assert read(tokens, pairs) == labels


def test_keys_and_values_come_once_and_each_key_is_asked() -> None:
    for tokens in make(Recall(), 100).tokens.tolist():
        body, tail = tokens[:-8], tokens[-8:]
        keys, values = [one for one in body if one in KEYS], [one for one in body if one in VALUES]
        assert len(set(keys)) == len(keys) == len(set(values)) == len(values) == 8
        assert sorted(tail) == sorted(keys)


@pytest.mark.parametrize("pairs", [2, 8])
def test_a_reader_of_the_bag_is_right_once_in_as_many_as_there_are_pairs(
    pairs: int, bag_share: Callable[..., float]
) -> None:
    task = Recall(pairs=pairs)
    (group,) = task.groups
    assert (group.blind, group.chance) == (1 / pairs, 1 / 16)
    got = bag_share(make(task, 8000), lambda bag: [one - VALUES.start for one in bag if one in VALUES])
    # Questions of a sequence share its values, so that sequences are the draws.
    assert got == pytest.approx(group.blind, abs=4 * math.sqrt(group.blind * (1 - group.blind) / 4000))


@pytest.mark.parametrize("pairs", [1, 17])
def test_a_number_of_pairs_that_it_has_not_is_unsupported(pairs: int) -> None:
    with pytest.raises(Unsupported, match="16 keys"):
        Recall(pairs=pairs)


def test_the_shortest_length_is_its_pairs_and_questions() -> None:
    assert make(Recall(), 2, 24).tokens.shape == (2, 24)
    with pytest.raises(Unsupported, match="at least 24"):
        make(Recall(), 2, 23)
