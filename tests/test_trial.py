"""Accuracy over seeds: who learned, how fast, and what the means are of."""

import pytest

from grape_bench.cell import AccuracyCell, TrainingOptions
from grape_bench.outcome import outcomes
from grape_bench.record import AccuracyReading, CurvePoint
from grape_bench.score import Score
from grape_bench.trial import courses


def _cell(seed, encoding="rope", **changes):
    fixed = {"task": "registers(writes=4)", "train_length": 64, "test_lengths": (64, 128)}
    return AccuracyCell(seed=seed, encoding=encoding, **(fixed | changes))


def _reading(trained, doubled, curve=()):
    scores = tuple(
        Score(length=length, group="recall", correct=correct, total=1000, blind=0.25, chance=0.1)
        for length, correct in ((64, trained), (128, doubled))
    )
    points = tuple(CurvePoint(step=step, loss=1.0, accuracy={"recall": accuracy}) for step, accuracy in curve)
    return AccuracyReading(
        headline="recall", scores=scores, curve=points, data_sha="0", parameters=1, lr=6e-3, train_s=1, train_cpu_s=1
    )


@pytest.fixture
def make_course(make_record):
    def make(*readings, threshold=0.75):
        cells = [_cell(seed) for seed in range(len(readings))]
        records = [make_record(cell, reading=one) for cell, one in zip(cells, readings, strict=True) if one]
        (course,) = courses(outcomes(cells, records).values(), threshold)
        return course

    return make


def test_learned_is_a_normalised_score_at_the_training_length(make_course):
    # blind 0.25: an accuracy of 0.8125 is a normalised score of exactly 0.75
    course = make_course(_reading(813, 400), _reading(812, 400))
    assert [one.cell.seed for one in course.trials[0].learners] == [0]
    assert course.trials[0].unlearned == 1


def test_means_are_over_the_seeds_that_learned(make_course):
    (trial,) = make_course(_reading(900, 700), _reading(950, 800), _reading(300, 250)).trials
    found = trial.accuracy(128, "recall")
    assert (found.mid, found.n) == (pytest.approx(0.75), 2)


def test_where_none_learned_means_are_over_all_seeds(make_course):
    (trial,) = make_course(_reading(300, 250), _reading(500, 350)).trials
    assert trial.accuracy(64, "recall").mid == pytest.approx(0.4)
    assert trial.accuracy(4096, "recall") is None


def test_steps_to_nine_tenths_are_read_from_the_curve(make_course):
    # 0.9 normalised is 0.25 + 0.9 * 0.75 = 0.925
    quick = _reading(990, 700, curve=((50, 0.5), (100, 0.93), (150, 0.92)))
    never = _reading(990, 700, curve=((50, 0.5), (100, 0.92)))
    assert make_course(quick, never).trials[0].steps() == (100, None)


def test_a_missing_seed_is_not_a_seed_that_did_not_learn(make_course):
    (trial,) = make_course(_reading(900, 700), None).trials
    assert (trial.unlearned, len(trial.records), len(trial.outcomes)) == (0, 1, 2)


def test_settings_are_kept_apart_and_named_by_what_differs(make_record):
    cells = [_cell(0), _cell(0, training=TrainingOptions(steps=200)), _cell(0, encoding="none")]
    found = courses(outcomes(cells, []).values(), 0.75)
    assert [len(course.trials) for course in found] == [2, 1]
    assert [str(course) for course in found] == [
        "registers(writes=4), trained at 64 tokens",
        "registers(writes=4), trained at 64 tokens, steps 200",
    ]
    assert found[0].task == "registers"
