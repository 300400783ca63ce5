"""Addition against Python's own, and its blind ceilings counted over all pairs."""

import math
from collections import Counter, defaultdict
from itertools import permutations, product

import pytest
import torch

from grape_bench.errors import Unsupported
from grape_bench.tasks import Batch
from grape_bench.tasks.addition import Addition

DIGITS, PLUS, QUESTION = range(10), 26, 27
Guess = dict[tuple[int, ...], list[int]]


def make(task: Addition, count: int, length: int = 48, seed: int = 0) -> Batch:
    return task.batch(count, length, torch.Generator().manual_seed(seed))


def answers(first: str, second: str) -> list[int]:
    """Labels of a sum: its digits from the ones up, then 10 for no further one and 11 for one more."""
    total = str(int(first) + int(second)).zfill(len(first) + 1)
    return [*map(int, reversed(total[1:])), 10 + int(total[0])]


@pytest.mark.parametrize("length", [48, 11])
@pytest.mark.parametrize("digits", [2, 3])
def test_a_reader_agrees_with_every_label(digits: int, length: int) -> None:
    batch = make(Addition(digits=digits), 200, length)
    for tokens, labels in zip(batch.tokens.tolist(), batch.labels.tolist(), strict=True):
        plus = tokens.index(PLUS)
        first, second = tokens[plus - digits : plus], tokens[plus + 1 : plus + 1 + digits]
        assert labels == answers("".join(map(str, first)), "".join(map(str, second)))
        assert tokens[-digits - 1 :] == [QUESTION] * (digits + 1)


def best_guesses(digits: int) -> tuple[Guess, list[int]]:
    """For each bag of digits the commonest label of every place, and how often they are right over all pairs."""
    seen: defaultdict[tuple[int, ...], list[Counter[int]]] = defaultdict(lambda: [Counter() for _ in range(digits + 1)])
    numbers = ["".join(one) for one in product("0123456789", repeat=digits)]
    for first, second in product(numbers, repeat=2):
        bag = tuple(sorted(map(int, first + second)))
        for counter, label in zip(seen[bag], answers(first, second), strict=True):
            counter[label] += 1
    guesses = {bag: [one.most_common(1)[0][0] for one in found] for bag, found in seen.items()}
    right = [sum(found[place].most_common(1)[0][1] for found in seen.values()) for place in range(digits + 1)]
    return guesses, right


def test_the_best_reader_of_the_bag_is_right_as_often_as_is_said() -> None:
    task = Addition(digits=2)
    guesses, right = best_guesses(2)
    digit, carry = task.groups
    assert digit.blind == pytest.approx(sum(right[:2]) / (2 * 10**4))
    assert carry.blind == pytest.approx(right[2] / 10**4)
    batch = make(task, 8000)
    rows = list(zip(batch.tokens.tolist(), batch.labels.tolist(), strict=True))
    for group, places in ((digit, (0, 1)), (carry, (2,))):
        hits = 0
        for tokens, labels in rows:
            guess = guesses[tuple(sorted(one for one in tokens if one in DIGITS))]
            hits += sum(guess[place] == labels[place] for place in places)
        noise = 4 * math.sqrt(group.blind * (1 - group.blind) / len(rows))
        assert hits / (len(rows) * len(places)) == pytest.approx(group.blind, abs=noise)


@pytest.mark.parametrize(("digits", "bags"), [(3, 300), (4, 12)])
def test_ceilings_of_more_digits_are_means_over_random_bags(digits: int, bags: int) -> None:
    """All orders of a drawn bag are as likely, so that its ceiling is counted over them."""
    generator = torch.Generator().manual_seed(1)
    orders = torch.tensor(list(permutations(range(2 * digits))))
    powers = 10 ** torch.arange(digits)
    found = []
    for _ in range(bags):
        drawn = torch.randint(0, 10, (2 * digits,), generator=generator)[orders]
        total = (drawn[:, :digits] * powers).sum(1) + (drawn[:, digits:] * powers).sum(1)
        columns = [total // 10**place % 10 for place in range(digits + 1)]
        found.append([one.bincount().max().item() / len(orders) for one in columns])
    ceilings = torch.tensor(found, dtype=torch.float64)
    for group, own in zip(Addition(digits=digits).groups, (ceilings[:, :-1].mean(1), ceilings[:, -1]), strict=True):
        assert own.mean().item() == pytest.approx(group.blind, abs=4 * own.std().item() / math.sqrt(bags))


def test_digits_are_uniform_and_columns_keep_their_distance() -> None:
    counts: Counter[int] = Counter()
    for tokens in make(Addition(), 2000).tokens.tolist():
        places = [place for place, token in enumerate(tokens) if token in DIGITS or token == PLUS]
        assert places == list(range(places[0], places[0] + 7))
        assert tokens[places[3]] == PLUS
        counts.update(token for token in tokens if token in DIGITS)
    for digit in DIGITS:
        assert counts[digit] / 12_000 == pytest.approx(0.1, abs=4 * math.sqrt(0.09 / 12_000))


def test_other_widths_and_lengths_without_room_are_unsupported() -> None:
    with pytest.raises(Unsupported, match="2, 3, 4 digits, got 5"):
        Addition(digits=5)
    with pytest.raises(Unsupported, match="do not fit"):
        make(Addition(), 2, 10)
