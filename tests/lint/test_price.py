"""How long an entry takes, by records and by arithmetic."""

from pathlib import Path

import pytest

from grape_bench.lint.price import price
from grape_bench.lint.subject import Machine, Subject
from grape_bench.store import Store
from grape_bench.suite import expand, load, parse

HOME = Path(__file__).resolve().parents[2]
TEXT = """title: A test
encodings: [none, rope]
seeds: [0, 1]
accuracy:
  - task: registers
    train_length: 64
    test_lengths: [64]
    model: {width: 32, layers: 3, heads: 2}
    training: {steps: 10, batch: 4, test_examples: 6}
"""


def hours(text: str, cores: int = 1) -> float:
    subject = Subject(parse(text, "suites/test.yaml"), Machine(16, cores))
    return price(subject, subject.trainings[0]).hours


def test_the_arithmetic_is_that_of_weights_and_scores() -> None:
    """By matrix: q, k, v, o are C x C, the MLP C x 4C and back; scores and their sum are T x T x C each."""
    weights, scores = 4 * 32 * 32 + 2 * 4 * 32 * 32, 2 * 64 * 32  # multiplications a token and layer
    sequence = 2 * 3 * 64 * (weights + scores)
    operations = 3 * 10 * 4 * sequence + 6 * sequence
    assert hours(TEXT) == pytest.approx(4 * (0.5 + operations / 20e9) / 3600)


def test_tuning_is_one_training_more_for_each_rate_and_encoding() -> None:
    tuned = f"{TEXT}    tune: {{lr: [1e-3, 2e-3, 3e-3]}}\n"
    assert hours(tuned) == pytest.approx(hours(TEXT) * (2 + 3) / 2)


def test_trainings_share_the_cores() -> None:
    assert hours(TEXT, cores=4) == pytest.approx(hours(TEXT) / 4)


def test_mixed_lengths_are_shorter_on_average() -> None:
    long = TEXT.replace("64", "4096").replace("steps: 10,", "steps: 1000,")
    assert hours(long.replace("steps:", "shortest: 64, steps:")) < hours(long) / 2


@pytest.mark.parametrize("name", ["source-table-cpu", "quick", "cost", "memory"])
def test_the_rough_model_is_within_a_factor_of_four_of_the_records(name: str) -> None:
    suite, records = load(HOME / "suites" / f"{name}.yaml"), Store(HOME / "results").records(name)
    rough, known = (Subject(suite, Machine(16, 2), some) for some in ((), records))
    for entry in (*known.costs, *known.trainings):
        one, other = price(rough, entry), price(known, entry)
        assert "on record" in other.source
        assert "rough model" in one.source
        assert other.hours / 4 < one.hours < 4 * other.hours


def test_what_is_on_record_counts_in_place_of_the_model() -> None:
    suite = load(HOME / "suites" / "quick.yaml")
    [cell] = {one for one in expand(suite) if one.kind == "accuracy" and one.seed == 0 and one.encoding == "rope"}
    [record] = [one for one in Store(HOME / "results").records("quick") if one.id == cell.id and one.status == "ok"][:1]
    slow = record.model_copy(update={"seconds": 86_400.0})
    subject = Subject(suite, Machine(16, 1), [slow])
    assert price(subject, subject.trainings[0]).hours == pytest.approx(18 * 24)
