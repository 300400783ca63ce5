"""Equal tuning: which trainings decide, and which rate they choose."""

import pytest

from grape_bench.cell import AccuracyCell, TrainingOptions
from grape_bench.record import AccuracyReading, CurvePoint
from grape_bench.score import Score
from grape_bench.tuning import TUNING_SEED, candidates, choose, missing

RATES = (1e-3, 3e-3, 6e-3)


@pytest.fixture
def cell() -> AccuracyCell:
    return AccuracyCell(
        task="registers",
        encoding="rope",
        seed=3,
        train_length=64,
        test_lengths=(64, 128),
        training=TrainingOptions(steps=10),
        tune=RATES,
    )


def reading(right: int, loss: float) -> AccuracyReading:
    scores = [
        Score(length=64, group="recall", correct=right, total=100, blind=1 / 3, chance=0.1),
        Score(length=64, group="cmp", correct=100 - right, total=100, blind=0.5, chance=0.5),
    ]
    return AccuracyReading(
        headline="recall",
        scores=tuple(scores),
        curve=(CurvePoint(step=10, loss=loss, accuracy={"recall": 0.5}),),
        data_sha="0",
        parameters=1,
        lr=1.0,
        train_s=1.0,
        train_cpu_s=1.0,
    )


def test_candidates_share_budget_and_seed_and_see_the_training_length_alone(cell):
    made = candidates(cell)
    assert [one.training.lr for one in made] == list(RATES)
    assert {one.seed for one in made} == {TUNING_SEED}
    assert {one.test_lengths for one in made} == {(64,)}
    assert {one.training.steps for one in made} == {10}
    assert len({one.id for one in made}) == 3


def test_all_seeds_of_an_encoding_share_their_candidates(cell):
    other = cell.model_copy(update={"seed": 4})
    assert candidates(cell) == candidates(other)
    assert cell.id != other.id


def test_the_best_headline_accuracy_wins_and_loss_breaks_a_tie(cell, make_record):
    first, second, third = candidates(cell)
    records = [
        make_record(first, reading=reading(90, 0.1)),
        make_record(second, reading=reading(95, 0.3)),
        make_record(third, reading=reading(95, 0.2)),
    ]
    assert choose(cell, records) == third.training.lr


def test_a_candidate_that_failed_is_not_missing_and_not_chosen(cell, make_record):
    first, second, third = candidates(cell)
    records = [make_record(first, status="failed", fault="nan"), make_record(second, reading=reading(50, 1.0))]
    assert missing(cell, records) == (third,)
    assert choose(cell, records) == second.training.lr


def test_no_rate_is_chosen_where_none_was_trained(cell, make_record):
    assert choose(cell, [make_record(one, status="failed", fault="nan") for one in candidates(cell)]) is None


def test_a_cell_that_is_not_tuned_has_no_candidates(cell):
    assert candidates(cell.model_copy(update={"tune": ()})) == ()
