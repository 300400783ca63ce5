"""How long a block may take: its entry's minutes, else the suite's."""

import pytest

from grape_bench import suite as suites
from grape_bench.cell import AccuracyCell, Block
from grape_bench.suite_limits import minutes
from grape_bench.tuning import candidates

TEXT = """
title: Limits
encodings: [none, rope]
block_minutes: 7
cost:
  - {lengths: [8], metrics: [forward_ms], minutes: 2}
  - {lengths: [16], metrics: [forward_ms]}
  - {lengths: [8], metrics: [decode_ms], minutes: 3, encodings: [rope]}
accuracy:
  - {task: registers, train_length: 16, test_lengths: [16], minutes: 90, tune: {lr: [0.001]}}
  - {task: copy, train_length: 16, test_lengths: [16]}
"""


@pytest.fixture(scope="module")
def suite() -> suites.Suite:
    return suites.parse(TEXT, "limits.yaml")


def test_the_most_that_an_entry_of_its_setting_grants_counts(suite: suites.Suite) -> None:
    found = {(one.cells[0].metric, one.cells[0].setting): minutes(suite, one) for one in blocks(suite)}
    assert sorted(found.values()) == [3, 3, 7, 7, 90]


def test_tuning_has_the_minutes_of_the_training_that_it_is_for(suite: suites.Suite) -> None:
    (cell,) = [one for one in suites.expand(suite) if isinstance(one, AccuracyCell) and one.tune][:1]
    for candidate in candidates(cell):
        assert minutes(suite, Block((candidate,))) == 90


def test_minutes_change_no_cell(suite: suites.Suite) -> None:
    plain = suites.parse(TEXT.replace(", minutes: 2", "").replace(", minutes: 90", ""), "limits.yaml")
    assert suites.expand(plain) == suites.expand(suite)


def blocks(suite: suites.Suite) -> list[Block]:
    return suites.group(suites.expand(suite), None)
