"""Many encodings over seeds: what is split and what is not, with simulations of what is promised."""

from itertools import combinations

import numpy as np

from grape_bench.groups import holm, rank

NAMES = tuple("abcdefghij")


def make_suites(count, seeds, *, gaps=(0.0,) * 10, noise=(0.01,) * 10, rng):
    """Scores (count, seeds, encodings): a shared effect of the seed, a gap of the encoding, and noise of its own."""
    shared = 0.6 + 0.03 * rng.standard_normal((count, seeds, 1))
    return shared + np.array(gaps) + np.array(noise) * rng.standard_normal((count, seeds, len(gaps)))


def ranked(suite):
    return rank({name: dict(enumerate(row)) for name, row in zip(NAMES, suite.T.tolist(), strict=False)})


def shuffled(suite, rng, shuffles=199):
    """Decision 7's other road: whether the widest gap of means is beyond that of labels shuffled within each seed."""
    seeds, encodings = suite.shape
    order = rng.random((shuffles, seeds, encodings)).argsort(axis=2)
    means = np.take_along_axis(np.broadcast_to(suite, order.shape), order, axis=2).mean(axis=1)
    return np.ptp(suite.mean(axis=0)) > np.quantile(np.ptp(means, axis=1), 0.95)


def test_ten_identical_encodings_are_hardly_ever_split():
    suites = make_suites(400, 8, rng=np.random.default_rng(0))
    assert np.mean([bool(ranked(one).apart) for one in suites]) <= 0.07


def test_unlike_noise_breaks_shuffled_labels_and_not_holm():
    rng = np.random.default_rng(1)
    suites = make_suites(200, 8, noise=(0.05,) + (0.01,) * 9, rng=rng)
    assert np.mean([bool(ranked(one).apart) for one in suites]) <= 0.07
    assert np.mean([shuffled(one, rng) for one in suites]) > 0.1


def test_a_clear_gap_is_found_among_ten_and_a_small_one_where_the_rest_is_far():
    rng = np.random.default_rng(2)
    clear = make_suites(60, 8, gaps=(0.04,) + (0.0,) * 9, rng=rng)
    assert np.mean([{("a", one) for one in NAMES[1:]} <= ranked(suite).apart for suite in clear]) > 0.5
    far = make_suites(60, 8, gaps=(0.02, 0.0, *(-0.1 * step for step in range(1, 9))), rng=rng)
    assert np.mean([("a", "b") in ranked(suite).apart for suite in far]) > 0.8


def test_ranges_of_ranks_hold_together():
    gaps = (0.03, 0.03, 0.02, 0.02, 0.01, 0.01, 0.0, 0.0, -0.1, -0.2)
    wrong = 0
    for suite in make_suites(100, 8, gaps=gaps, rng=np.random.default_rng(3)):
        for place in ranked(suite).places:
            own = gaps[NAMES.index(place.name)]
            above, below = sum(one > own for one in gaps), sum(one < own for one in gaps)
            wrong += place.best > above + 1 or place.worst < len(gaps) - below
    assert wrong <= 7


def test_groups_are_of_who_cannot_be_told_from_the_best_of_those_left():
    rng = np.random.default_rng(4)
    scores = {
        name: dict(enumerate(level + 0.001 * rng.standard_normal(8)))
        for name, level in zip("abc", (0.9, 0.8, 0.5), strict=True)
    }
    scores["loose"] = dict(enumerate((1.0, 0.5) * 4))
    places = {one.name: (one.group, one.best, one.worst) for one in rank(scores).places}
    assert places == {"a": (1, 1, 2), "loose": (1, 1, 4), "b": (2, 2, 3), "c": (3, 3, 4)}


def test_too_few_seeds_give_no_rank_and_leave_room_in_the_others():
    rng = np.random.default_rng(5)
    scores = {name: dict(enumerate(level + 0.001 * rng.standard_normal(8))) for name, level in (("a", 0.9), ("b", 0.5))}
    found = rank({**scores, "few": {0: 0.1, 1: 0.11, 2: 0.12}})
    few = found.places[-1]
    assert few.underpowered
    assert (few.best, few.worst) == (0, 0)
    assert 0 < few.detectable < 1
    assert [(one.best, one.worst) for one in found.places[:2]] == [(1, 2), (2, 3)]
    assert found.apart == {("a", "b")}


def test_one_seed_says_nothing():
    (one, other) = rank({"a": {0: 0.9}, "b": {0: 0.1}}).places
    assert one.underpowered
    assert np.isnan([one.detectable, other.detectable]).all()
    assert rank({}).places == ()


def test_pairs_go_by_the_seeds_they_share():
    # b was lucky in its further seeds: its mean is the higher one, and a is better wherever both were trained.
    a = {seed: 0.5 + 0.01 * seed for seed in range(6)}
    b = {seed: score - 0.05 - 0.001 * seed for seed, score in a.items()} | {6: 1.0, 7: 1.0}
    found = rank({"a": a, "b": b})
    assert [one.name for one in found.places] == ["b", "a"]
    assert found.apart == {("a", "b")}
    assert [(one.group, one.best, one.worst) for one in found.places] == [(2, 2, 2), (1, 1, 1)]


def test_holm_stops_at_the_first_that_fails():
    pairs = list(combinations("abcd", 2))[:5]
    # 0.05 over 5, 4, 3, 2, 1: 0.01, 0.0125, 0.0167, 0.025, 0.05
    assert holm(dict(zip(pairs, (0.009, 0.012, 0.017, 0.018, 0.6), strict=True))) == set(pairs[:2])
    assert holm(dict(zip(pairs, (0.04, 0.001, 0.001, 0.001, 0.001), strict=True))) == set(pairs)
    assert holm({}) == frozenset()
