"""Registers against a reader written as a loop, and its exact symmetries."""

import hashlib
import math
from collections import Counter
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grape_bench.errors import Unsupported
from grape_bench.tasks import Batch, spread
from grape_bench.tasks.registers import Registers

DIGITS = 10


def make(task: Registers, count: int, length: int = 64, seed: int = 0) -> Batch:
    return task.batch(count, length, torch.Generator().manual_seed(seed))


def read(task: Registers, tokens: list[int]) -> list[int]:
    """Read a sequence from left to right, as its author would by hand."""
    last: dict[int, int] = {}
    labels = []
    asked = -1
    for token in tokens:
        if token < task.registers * DIGITS:
            last[token // DIGITS] = token % DIGITS
        elif token < task.ask + task.registers:
            asked = last[token - task.ask]
            labels.append(asked)
        elif token < task.filler:
            labels.append(DIGITS + int(asked > last[token - task.ask - task.registers]))
    return labels


def writes(task: Registers, tokens: list[int]) -> dict[int, list[int]]:
    """The digits written to each register, in order."""
    found: dict[int, list[int]] = {register: [] for register in range(task.registers)}
    for token in tokens:
        if token < task.registers * DIGITS:
            found[token // DIGITS].append(token % DIGITS)
    return found


TASKS = [
    pytest.param(Registers(), id="default"),
    pytest.param(Registers(registers=2, writes=2, pairs=1), id="least"),
    pytest.param(Registers(registers=5, writes=10, pairs=3), id="all digits"),
]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("length", [64, 100])
def test_a_reader_agrees_with_every_label(task: Registers, length: int) -> None:
    batch = make(task, 200, length)
    for tokens, labels in zip(batch.tokens.tolist(), batch.labels.tolist(), strict=True):
        assert read(task, tokens) == labels


@pytest.mark.parametrize("task", TASKS)
def test_every_register_receives_the_same_distinct_digits(task: Registers) -> None:
    for tokens in make(task, 100).tokens.tolist():
        found = list(writes(task, tokens).values())
        assert all(len(one) == task.writes == len(set(one)) for one in found)
        assert all(set(one) == set(found[0]) for one in found)


def test_last_digits_are_never_all_equal() -> None:
    task = Registers(registers=2, writes=2, pairs=1)
    for tokens in make(task, 500).tokens.tolist():
        assert len({one[-1] for one in writes(task, tokens).values()}) > 1


def test_compared_registers_differ_in_their_last_digit() -> None:
    task = Registers()
    for tokens in make(task, 300).tokens.tolist():
        last = {register: digits[-1] for register, digits in writes(task, tokens).items()}
        tail = tokens[-2 * task.pairs :]
        for ask, compare in zip(tail[::2], tail[1::2], strict=True):
            assert last[ask - task.ask] != last[compare - task.ask - task.registers]


def test_the_tail_alternates_between_the_two_questions() -> None:
    task = Registers(pairs=4)
    batch = make(task, 20)
    assert batch.groups.tolist() == [0, 1] * 4
    tail = batch.tokens[:, -8:]
    assert ((tail[:, ::2] >= task.ask) & (tail[:, ::2] < task.ask + task.registers)).all()
    assert ((tail[:, 1::2] >= task.ask + task.registers) & (tail[:, 1::2] < task.filler)).all()


def spread_of(share: float, draws: int) -> float:
    """Four standard deviations."""
    return 4 * math.sqrt(share * (1 - share) / draws)


def test_labels_are_balanced() -> None:
    batch = make(Registers(), 5000)
    recall, compared = batch.labels[:, ::2].flatten().tolist(), batch.labels[:, 1::2].flatten().tolist()
    # Questions of one sequence share its digits, so that sequences are the draws.
    for digit, count in Counter(recall).items():
        assert 0 <= digit < DIGITS
        assert count / len(recall) == pytest.approx(0.1, abs=spread_of(0.1, 5000))
    assert set(compared) == {DIGITS, DIGITS + 1}
    assert compared.count(DIGITS) / len(compared) == pytest.approx(0.5, abs=spread_of(0.5, 5000))


@pytest.mark.parametrize("task", TASKS)
def test_blind_ceilings_are_exact(task: Registers) -> None:
    """A reader of the bag knows the W digits of each register; every one of them is the last as often."""
    assert [(group.name, group.blind, group.chance) for group in task.groups] == [
        ("recall", 1 / task.writes, 0.1),
        ("cmp", 0.5, 0.5),
    ]
    ranks: Counter[tuple[int, int]] = Counter()
    count = 3000
    for tokens in make(task, count, length=100, seed=3).tokens.tolist():
        asked = tokens[-2 * task.pairs] - task.ask
        digits = writes(task, tokens)[asked]
        ranks[asked, sorted(digits).index(digits[-1])] += 1
    for register in range(task.registers):
        mine = [ranks[register, rank] for rank in range(task.writes)]
        for one in mine:
            assert one / sum(mine) == pytest.approx(1 / task.writes, abs=spread_of(1 / task.writes, sum(mine)))


def test_registers_are_written_to_in_random_order() -> None:
    task, first = Registers(), Counter[int]()
    for tokens in make(task, 2000).tokens.tolist():
        first[next(token // DIGITS for token in tokens if token < task.registers * DIGITS)] += 1
    for register in range(4):
        assert first[register] / 2000 == pytest.approx(0.25, abs=spread_of(0.25, 2000))


def test_gaps_grow_with_the_length_and_the_number_of_writes_does_not() -> None:
    task, gaps = Registers(), {}
    for length in (64, 512):
        batch = make(task, 200, length)
        is_write = batch.tokens < task.registers * DIGITS
        assert (is_write.sum(dim=1) == 12).all()
        last = [max(i for i, token in enumerate(row) if token < 40) for row in batch.tokens.tolist()]
        gaps[length] = sorted(length - one for one in last)[100]
    assert gaps[512] > 2 * gaps[64]


def test_the_shortest_length_is_its_writes_and_questions() -> None:
    task = Registers()
    assert make(task, 2, length=24).tokens.shape == (2, 24)
    with pytest.raises(Unsupported, match="at least 24 tokens"):
        make(task, 2, length=23)


@pytest.mark.parametrize("options", [{"registers": 1}, {"writes": 1}, {"writes": 11}, {"pairs": 0}])
def test_sizes_that_make_no_sense_are_unsupported(options: dict[str, int]) -> None:
    with pytest.raises(Unsupported):
        Registers(**options)


@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 9), st.integers(0, 20), st.integers(0, 2**16))
@settings(deadline=None, max_examples=80)
def test_spans_never_overlap(spans: int, width: int, low: int, slack: int, seed: int) -> None:
    high = low + spans * width + slack
    starts = spread(16, spans, width, (low, high), torch.Generator().manual_seed(seed))
    assert starts.shape == (16, spans)
    for row in starts.tolist():
        assert low <= row[0]
        assert row[-1] + width <= high
        assert all(right - left >= width for left, right in pairwise(row))


def test_a_longer_input_that_extends_is_as_dense_and_balanced() -> None:
    """As many writes a token, each digit as often as the others, and no more than before to be read from the bag."""
    task, gaps = Registers(extend=64), {}
    for length, rounds in ((64, 1), (96, 2), (128, 2), (256, 4)):
        batch = make(task, 200, length)
        assert batch.tokens.shape == (200, length)
        found = [writes(task, tokens) for tokens in batch.tokens.tolist()]
        for digits in found:
            counts = [Counter(one) for one in digits.values()]
            assert len(set(map(frozenset, counts))) == 1
            assert {count for one in counts for count in one.values()} == {rounds}
        last = [max(i for i, token in enumerate(row[:-12]) if token < 40) for row in batch.tokens.tolist()]
        gaps[length] = sorted(length - 12 - one for one in last)[100]
    assert gaps[256] <= gaps[64] + 2  # filler behind the last write does not grow


@pytest.mark.parametrize("task", [Registers(extend=40), Registers(registers=2, writes=2, pairs=3, extend=20)])
def test_a_reader_agrees_with_every_label_of_an_extended_input(task: Registers) -> None:
    batch = make(task, 200, 160)
    for tokens, labels in zip(batch.tokens.tolist(), batch.labels.tolist(), strict=True):
        assert read(task, tokens) == labels


def test_blind_stays_exact_on_an_extended_input() -> None:
    task, ranks, count = Registers(extend=64), Counter[int](), 3000
    assert [group.blind for group in task.groups] == [1 / 3, 0.5]
    for tokens in make(task, count, length=256, seed=3).tokens.tolist():
        digits = writes(task, tokens)[tokens[-12] - task.ask]
        ranks[sorted(set(digits)).index(digits[-1])] += 1
    for rank in range(3):
        assert ranks[rank] / count == pytest.approx(1 / 3, abs=spread_of(1 / 3, count))


def test_at_its_own_length_an_extended_input_is_a_stretched_one() -> None:
    one, other = make(Registers(), 50, 64, seed=9), make(Registers(extend=64), 50, 64, seed=9)
    assert torch.equal(one.tokens, other.tokens)
    assert torch.equal(one.labels, other.labels)


def test_stretching_draws_what_it_has_always_drawn() -> None:
    """Sequences of the versions on record: a change of these needs a new version of the task."""
    tokens = make(Registers(), 300, 64, seed=5).tokens
    assert hashlib.sha256(tokens.numpy().tobytes()).hexdigest()[:16] == "0132008bd45b9f69"


def test_a_round_that_takes_no_token_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="at least 1 token"):
        Registers(extend=0)
    with pytest.raises(Unsupported, match="at least 36 tokens"):
        make(Registers(extend=12), 2, 24)
