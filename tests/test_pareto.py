"""Who is off the front, and that noise alone takes none off it."""

from grape_bench.interval import Interval
from grape_bench.pareto import Offer, beaten


def _offer(name, score, time, mib=1.0, half=0.05):
    return Offer(name, score, (Interval(time - half, time, time + half), Interval.exact(mib)))


def test_better_and_not_dearer_beats():
    offers = [_offer("good", 0.9, 1.0), _offer("bad", 0.5, 1.0)]
    assert beaten(offers, {("good", "bad")}) == {"bad": "good"}
    assert beaten(offers, set()) == {}  # the scores cannot be told apart


def test_as_good_and_surely_cheaper_beats():
    assert beaten([_offer("fast", 0.5, 1.0), _offer("slow", 0.5, 2.0)], set()) == {"slow": "fast"}
    assert beaten([_offer("fast", 0.5, 1.0), _offer("slow", 0.5, 1.05)], set()) == {}
    assert beaten([_offer("small", 0.5, 1.0), _offer("large", 0.5, 1.0, mib=2)], set()) == {"large": "small"}


def test_who_costs_less_or_scores_more_stays():
    offers = [_offer("good", 0.9, 2.0), _offer("cheap", 0.5, 1.0), _offer("lean", 0.4, 1.5, mib=0.5)]
    assert beaten(offers, {("good", "cheap"), ("good", "lean"), ("cheap", "lean")}) == {}


def test_the_best_of_those_that_beat_is_named():
    offers = [_offer("worst", 0.1, 3.0), _offer("fair", 0.5, 1.0), _offer("best", 0.9, 1.0)]
    assert beaten(offers, {("best", "fair"), ("fair", "worst"), ("best", "worst")}) == {"worst": "best", "fair": "best"}
