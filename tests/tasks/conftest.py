"""A reader of the bag of tokens, for tasks in which every answer of the bag is as likely."""

from collections import Counter
from collections.abc import Callable

import pytest

from grape_bench.tasks import Batch

Answers = Callable[[list[int]], list[int]]


def _share(batch: Batch, answers: Answers) -> float:
    """Right answers on the second half, by the ranks that are commonest on the first.

    The reader knows the question's place and token and which answers are in the bag, sorted; that is all a bag can tell
    where the task treats its symbols alike.
    """
    ranks: dict[tuple[int, int], Counter[int]] = {}
    m, half, right = batch.labels.shape[1], len(batch.tokens) // 2, 0
    rows = list(zip(batch.tokens.tolist(), batch.labels.tolist(), strict=True))
    for number, (tokens, labels) in enumerate(rows):
        found = sorted(answers(sorted(tokens)))
        for place, label in enumerate(labels):
            seen = ranks.setdefault((place, tokens[place - m]), Counter())
            if number < half:
                seen[found.index(label)] += 1
            else:
                rank = seen.most_common(1)[0][0] if seen else 0
                right += found[rank] == label
    return right / (m * (len(rows) - half))


@pytest.fixture(scope="session")
def bag_share() -> Callable[[Batch, Answers], float]:
    return _share
