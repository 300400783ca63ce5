"""Passkey against a reader written as a loop, and a reader of the bag."""

import math
from collections.abc import Callable

import pytest
import torch

from grape_bench.errors import Unsupported
from grape_bench.tasks import Batch
from grape_bench.tasks.passkey import Passkey

DIGITS, KEY, NOTE, QUESTION = range(10), 42, 43, 44


def make(task: Passkey, count: int, length: int = 48, seed: int = 0) -> Batch:
    return task.batch(count, length, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("digits", "notes", "length"), [(5, 1, 48), (5, 1, 17), (2, 0, 20), (10, 3, 80)])
def test_a_reader_agrees_with_every_label(digits: int, notes: int, length: int) -> None:
    batch = make(Passkey(digits=digits, notes=notes), 100, length)
    for tokens, labels in zip(batch.tokens.tolist(), batch.labels.tolist(), strict=True):
        mark = tokens.index(KEY)
        assert labels == tokens[mark + 1 : mark + 1 + digits]
        assert tokens[-digits:] == [QUESTION] * digits


def test_notes_have_the_digits_of_the_key() -> None:
    orders = set()
    for tokens in make(Passkey(notes=2), 100).tokens.tolist():
        marks = [place for place, token in enumerate(tokens) if token in (KEY, NOTE)]
        numbers = [tuple(tokens[place + 1 : place + 6]) for place in marks]
        assert len(marks) == 3
        assert len({tuple(sorted(one)) for one in numbers}) == 1
        assert len(set(numbers[0])) == 5
        orders.add([tokens[place] for place in marks].index(KEY))
    assert orders == {0, 1, 2}


@pytest.mark.parametrize(("digits", "notes"), [(5, 1), (3, 0)])
def test_a_reader_of_the_bag_is_right_once_in_as_many_as_there_are_digits(
    digits: int, notes: int, bag_share: Callable[..., float]
) -> None:
    task = Passkey(digits=digits, notes=notes)
    (group,) = task.groups
    assert (group.blind, group.chance) == (1 / digits, 1 / 10)
    got = bag_share(make(task, 8000), lambda bag: list({one for one in bag if one in DIGITS}))
    assert got == pytest.approx(group.blind, abs=4 * math.sqrt(group.blind * (1 - group.blind) / 4000))


@pytest.mark.parametrize("options", [{"digits": 1}, {"digits": 11}, {"notes": -1}])
def test_numbers_that_it_cannot_write_are_unsupported(options: dict[str, int]) -> None:
    with pytest.raises(Unsupported, match="2 to 10 digits"):
        Passkey(**options)


def test_a_length_without_room_for_the_numbers_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="do not fit"):
        make(Passkey(), 2, 16)
