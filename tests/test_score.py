"""Scores: accuracies as they have always been, and losses beside them."""

import math

import pytest

from grape_bench.score import LEARNED_LOSS, Score

OLD = {"length": 64, "group": "recall", "correct": 800, "total": 1000, "blind": 0.25, "chance": 0.1}
LOSS = OLD | {"group": "end", "nats": 1500.0, "blind_nats": 3.0}


def test_a_score_of_before_reads_as_it_did() -> None:
    found = Score.model_validate(OLD)
    assert (found.accuracy, found.loss, found.figure, found.merit) == (0.8, None, 0.8, 0.8)
    assert found.normalised == pytest.approx((0.8 - 0.25) / 0.75)
    assert found.learned(0.73)
    assert not found.learned(0.74)


def test_less_loss_has_more_merit_and_the_share_of_the_blind_loss_that_is_saved() -> None:
    found, worse = Score.model_validate(LOSS), Score.model_validate(LOSS | {"nats": 1600.0})
    assert (found.loss, found.figure, found.merit) == (1.5, 1.5, -1.5)
    assert found.normalised == pytest.approx(0.5)
    assert worse.merit < found.merit
    assert worse.normalised < found.normalised


def test_a_perfect_loss_is_one_and_a_blind_one_is_nothing() -> None:
    scores = [Score.model_validate(LOSS | {"nats": nats}).normalised for nats in (0.0, 3000.0, 6000.0)]
    assert scores == [1.0, 0.0, -1.0]
    assert math.isnan(Score.model_validate(LOSS | {"blind_nats": None}).normalised)


def test_a_loss_has_learned_by_a_bar_of_its_own() -> None:
    """No language model saves three quarters of a unigram's loss."""
    border = 3000.0 * (1 - LEARNED_LOSS)
    assert Score.model_validate(LOSS | {"nats": border - 1}).learned(0.75)
    assert not Score.model_validate(LOSS | {"nats": border + 1}).learned(0.75)
