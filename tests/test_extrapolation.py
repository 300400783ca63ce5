"""Normalised scores and the area under them, against figures by hand."""

import pytest

from grape_bench.cell import AccuracyCell
from grape_bench.extrapolation import area, areas, beyond, normalised
from grape_bench.outcome import outcomes
from grape_bench.record import AccuracyReading
from grape_bench.score import Score
from grape_bench.trial import courses

LENGTHS = (32, 64, 128, 512)


@pytest.fixture
def make_training(make_record):
    def make(seed, *scores, lengths=LENGTHS):
        cell = AccuracyCell(task="registers", encoding="rope", seed=seed, train_length=64, test_lengths=lengths)
        found = [
            Score(
                length=length, group=group, correct=round(1000 * (0.5 + value / 2)), total=1000, blind=0.5, chance=0.1
            )
            for group in ("recall", "pairs")
            for length, value in zip(lengths, scores, strict=True)
        ]
        reading = AccuracyReading(
            headline="recall", scores=tuple(found), curve=(), data_sha="0", parameters=1, lr=1, train_s=1, train_cpu_s=1
        )
        return make_record(cell, reading=reading)

    return make


def _trial(*records):
    (course,) = courses(outcomes([one.cell for one in records], records).values(), 0.75)
    return course.trials[0]


def test_each_doubling_weighs_the_same(make_training):
    # from 64: one doubling from 0.8 to 0.6, two from 0.6 to 0.2, and the shorter length has no part in it
    assert area(make_training(0, 0.1, 0.8, 0.6, 0.2)) == pytest.approx((1 * 0.7 + 2 * 0.4) / 3)
    assert area(make_training(0, 0.0, 1.0, 1.0, 1.0)) == pytest.approx(1)


def test_without_longer_inputs_there_is_no_area(make_training):
    assert area(make_training(0, 1.0, 1.0, lengths=(32, 64))) is None
    assert areas(_trial(make_training(0, 1.0, 1.0, lengths=(32, 64)))) == {}
    assert beyond((32, 128), 64) == ()
    assert beyond((128, 32, 64), 64) == (64, 128)


def test_only_seeds_that_learned_extrapolate(make_training):
    trial = _trial(make_training(0, 0.0, 0.9, 0.5, 0.5), make_training(1, 0.0, 0.5, 0.5, 0.5))
    assert list(areas(trial)) == [0]
    assert normalised(trial, 64) == {0: pytest.approx(0.9)}
    assert normalised(trial, 4096) == {}
