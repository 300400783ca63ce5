"""What every task promises, run over every file of the folder; a new file is found by itself."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from grape_bench.errors import Unsupported
from grape_bench.registry import Registry
from grape_bench.tasks import Batch, Task, load, spread

NAMES = list(Registry("tasks"))
LENGTHS = (48, 64, 96, 128)

every = pytest.mark.parametrize("name", NAMES)
# Those whose questions stand in a tail; a language model is asked at every place.
with_a_tail = pytest.mark.parametrize("name", [one for one in NAMES if one != "text"])


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def shortest(task: Task) -> int:
    """A small length that it can be asked for."""
    for length in LENGTHS:
        try:
            task.batch(1, length, generator())
        except Unsupported:
            continue
        return length
    raise AssertionError(f"none of {LENGTHS} tokens is enough")


def made(name: str, count: int, seed: int = 0) -> tuple[Task, Batch]:
    task = load(name)
    return task, task.batch(count, shortest(task), generator(seed))


@every
def test_facts_are_declared(name: str) -> None:
    facts, task = Registry("tasks")[name].facts, load(name)
    assert facts["headline"] in [group.name for group in task.groups]
    assert facts["column"] in ("", "A", "B", "C")
    assert "Source:" in (type(task).__doc__ or "")
    for group in task.groups:
        assert 0 < group.chance <= group.blind <= 1


@every
def test_the_groups_that_it_declares_are_those_that_it_has(name: str) -> None:
    declared = Registry("tasks")[name].facts["asks"]
    assert declared in ((), tuple(group.name for group in load(name).groups))


@every
def test_equal_generators_make_equal_batches(name: str) -> None:
    _, one = made(name, 7, seed=5)
    _, same = made(name, 7, seed=5)
    _, other = made(name, 7, seed=6)
    assert torch.equal(one.tokens, same.tokens)
    assert torch.equal(one.labels, same.labels)
    assert not torch.equal(one.tokens, other.tokens)


@every
def test_the_global_generator_is_left_alone(name: str) -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    made(name, 3)
    assert torch.equal(torch.get_rng_state(), before)


@every
def test_shapes_and_ranges_are_those_of_the_contract(name: str) -> None:
    task, batch = made(name, 50)
    n, m = batch.tokens.shape[1], batch.labels.shape[1]
    assert batch.tokens.shape == (50, shortest(task)) == (50, n)
    assert batch.labels.shape == (50, m)
    assert m <= n
    assert 0 <= batch.tokens.min() <= batch.tokens.max() < task.vocabulary
    assert 0 <= batch.labels.min() <= batch.labels.max() < task.answers
    assert batch.groups.shape == (m,)
    assert set(batch.groups.tolist()) <= set(range(len(task.groups)))
    if batch.kinds is not None:
        assert batch.kinds.shape == (m,)
        assert 0 <= batch.kinds.min() <= batch.kinds.max() < task.kinds


@with_a_tail
def test_a_tail_asks_for_every_group_and_for_the_same_ones_at_every_length(name: str) -> None:
    task = load(name)
    n = shortest(task)
    assert set(task.batch(3, n, generator()).groups.tolist()) == set(range(len(task.groups)))
    one, longer = task.batch(3, n, generator()), task.batch(3, 2 * n, generator())
    assert torch.equal(one.groups, longer.groups)
    assert longer.tokens.shape == (3, 2 * n)


@with_a_tail
def test_groups_answer_from_sets_of_their_own(name: str) -> None:
    """One softmax serves all questions, so that chance is that of the group alone only if its answers are its own."""
    task, batch = made(name, 400)
    seen = [set(batch.labels[:, batch.groups == index].flatten().tolist()) for index in range(len(task.groups))]
    for index, group in enumerate(task.groups):
        assert len(seen[index]) <= round(1 / group.chance)


@every
def test_a_length_without_room_is_unsupported(name: str) -> None:
    task = load(name)
    for length in (1, 2, 5, 8):
        with pytest.raises(Unsupported, match=r"\d"):
            task.batch(2, length, generator())


def bags(task: Task, tokens: Tensor) -> Tensor:
    """How often each token occurs, its presence, and a constant: (B, 2 vocabulary + 1)."""
    counts = F.one_hot(tokens, task.vocabulary).sum(dim=1).double()
    return torch.cat((counts, counts.clamp(max=1), torch.ones(len(tokens), 1, dtype=torch.float64)), dim=1)


def blind_accuracy(task: Task, train: Batch, test: Batch, group: int) -> float:
    """A reader of bags of words: for each question's own token a ridge regression of answers on the bag."""
    right = asked = 0
    m = train.labels.shape[1]
    for place in (train.groups == group).nonzero().flatten().tolist():
        bag, other = bags(task, train.tokens), bags(task, test.tokens)
        own, own_test = train.tokens[:, place - m], test.tokens[:, place - m]
        for token in own.unique().tolist():
            mine, theirs = own == token, own_test == token
            if not theirs.any():
                continue
            x, y = bag[mine], F.one_hot(train.labels[mine, place], task.answers).double()
            weights = torch.linalg.solve(x.T @ x + 3.0 * torch.eye(x.shape[1], dtype=x.dtype), x.T @ y)
            right += int(((other[theirs] @ weights).argmax(dim=1) == test.labels[theirs, place]).sum())
            asked += int(theirs.sum())
    return right / asked


@with_a_tail
def test_a_bag_of_words_does_not_beat_blind_on_the_headline_group(name: str) -> None:
    task = load(name)
    n, count = shortest(task), 1500
    train, test = task.batch(6000, n, generator(1)), task.batch(count, n, generator(2))
    index = [group.name for group in task.groups].index(task.headline)
    group = task.groups[index]
    got = blind_accuracy(task, train, test, index)
    noise = 4 * math.sqrt(group.blind * (1 - group.blind) / count)
    assert got <= group.blind + noise
    # And it reads what there is to be read, or blind is too high.
    assert got >= group.blind - 0.06 - noise


@pytest.mark.parametrize(("spans", "width", "room"), [(4, 3, (2, 30)), (1, 5, (0, 5)), (3, 2, (1, 7))])
def test_spans_start_anywhere_there_is_room(spans: int, width: int, room: tuple[int, int]) -> None:
    starts = spread(4000, spans, width, room, generator())
    assert starts[:, 0].min().item() == room[0]
    assert starts[:, -1].max().item() == room[1] - width
