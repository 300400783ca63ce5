"""Intervals against hand-computed figures, an independent bootstrap, and simulations of what they promise."""

import math

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from grape_bench.interval import (
    Interval,
    chance,
    detectable,
    enough,
    joint,
    mean_interval,
    paired_ratio,
    unpaired_ratio,
)


def test_t_interval_agrees_with_a_table_of_t():
    found = mean_interval([1, 2, 3, 4, 5])  # sd 1.58114, t(0.975, 4) = 2.77645
    assert found.mid == 3
    assert found.half == pytest.approx(2.77645 * 1.58114 / math.sqrt(5), rel=1e-5)
    assert mean_interval([0.8, 0.9]).half == pytest.approx(12.7062 * 0.0707107 / math.sqrt(2), rel=1e-5)


def test_one_value_has_no_interval():
    found = mean_interval([0.5])
    assert (found.mid, found.known, found.n) == (0.5, False, 1)
    assert not paired_ratio([[2.0]], [[1.0]], seed=0).known


def test_t_interval_covers_the_truth_at_five_seeds():
    rng = np.random.default_rng(1)
    found = [mean_interval(row) for row in rng.normal(0.6, 0.03, (2000, 5)).tolist()]
    assert np.mean([one.low <= 0.6 <= one.high for one in found]) >= 0.93


def test_a_constant_ratio_is_found_exactly_whatever_the_machine_does():
    base = np.exp(np.random.default_rng(2).normal(0, 0.5, 40))
    found = paired_ratio([base * 1.25], [base], seed=0)
    assert (found.low, found.mid, found.high) == pytest.approx((1.25, 1.25, 1.25))


def test_the_ratio_is_the_median_of_log_ratios():
    # Log ratios of log 2, log 3 and log 12: the middle one is 3.
    found = paired_ratio([[2, 6, 60]], [[1, 2, 5]], seed=0)
    assert found.mid == pytest.approx(3)
    # Of two rounds the median is the geometric mean.
    assert paired_ratio([[2, 8]], [[1, 1]], seed=0).mid == pytest.approx(4)


@pytest.mark.parametrize("rounds", [7, 40])
def test_bootstrap_agrees_with_a_plain_one(rounds):
    rng = np.random.default_rng(3)
    logs = rng.normal(0.1, 0.05, rounds)
    found = paired_ratio([np.exp(logs)], [np.ones(rounds)], seed=0)
    plain = np.median(rng.choice(logs, (20_000, rounds)), axis=1)
    low, high = np.exp(np.quantile(plain, (0.025, 0.975)))
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.006)


def test_intervals_reproduce_and_come_of_their_seed():
    rng = np.random.default_rng(4)
    a, b = np.exp(rng.normal(0, 0.05, (2, 1, 40)))
    assert paired_ratio(a, b, seed=5) == paired_ratio(a, b, seed=5)
    assert len({paired_ratio(a, b, seed=seed) for seed in range(10)}) > 1


@pytest.mark.parametrize(("processes", "rounds"), [(1, 20), (1, 40), (3, 40)])
def test_an_encoding_against_itself_covers_one(processes, rounds):
    rng = np.random.default_rng(5)
    covered = 0
    for trial in range(300):
        drift = np.cumsum(rng.normal(0, 0.02, (processes, rounds)), axis=1)
        a, b = np.exp(drift + rng.normal(0, 0.05, (2, processes, rounds)))
        found = paired_ratio(a, b, seed=trial)
        covered += found.low <= 1 <= found.high
    assert covered / 300 >= 0.9


def test_processes_that_differ_widen_the_interval():
    rng = np.random.default_rng(6)
    noise = rng.normal(0, 0.01, (4, 40))
    own = np.array([-0.06, -0.02, 0.02, 0.06])[:, None]  # each process has its own memory layout
    apart, pooled = np.exp(noise + own), np.exp(noise + own).reshape(1, -1)
    wide, narrow = (paired_ratio(each, np.ones(each.shape), seed=0).half for each in (apart, pooled))
    assert wide > 2 * narrow


def test_linear_drift_biases_no_ratio_by_one_per_cent():
    """Ten per cent of drift over the run, members in shuffled rounds, each round followed by its reverse."""
    rng = np.random.default_rng(7)
    truth = np.array([1.0, 1.05, 1.1, 1.2, 0.9, 1.3])
    ratios = []
    for trial in range(20):
        order = [rng.permutation(len(truth)) for _ in range(20)]
        order = [each for shuffled in order for each in (shuffled, shuffled[::-1])]
        calls = np.concatenate(order)
        times = truth[calls] * np.linspace(1, 1.1, len(calls)) * np.exp(rng.normal(0, 0.01, len(calls)))
        samples = [times[calls == member] for member in range(len(truth))]
        ratios.append([paired_ratio([each], [samples[0]], seed=trial).mid for each in samples])
    ratios = np.array(ratios)
    assert np.all(np.abs(ratios.mean(axis=0) / truth - 1) < 0.002)
    assert np.all(np.abs(ratios / truth - 1) < 0.01)


def test_unpaired_ratio_is_the_ratio_of_medians():
    found = unpaired_ratio([[4, 4, 4, 4]], [[2, 2, 2]], seed=0)
    assert (found.low, found.mid, found.high) == pytest.approx((2, 2, 2))


def test_processes_may_differ_in_rounds_but_pairs_may_not():
    found = paired_ratio([[2, 2, 2], [2, 2]], [[1, 1, 1], [1, 1]], seed=0)
    assert (found.low, found.high, found.n) == pytest.approx((2, 2, 5))
    with pytest.raises(ValueError, match="same processes and rounds"):
        paired_ratio([[1, 2, 3]], [[1, 2]], seed=0)


def test_an_exact_figure_has_a_width_of_nothing():
    assert Interval.exact(1.5).half == 0
    assert Interval.exact(1.5).known


def test_an_interval_of_three_processes_holds_the_truth_where_processes_differ():
    rng, held, times = np.random.default_rng(0), 0, 200
    for trial in range(times):
        shift = rng.normal(0, 0.05, 3)  # what the layout of its memory does to one process
        base = [np.exp(rng.normal(0, 0.03, 6)) for _ in shift]
        own = [1.2 * np.exp(one + rng.normal(0, 0.03, 6)) for one in shift]
        found = paired_ratio(own, base, seed=trial)
        held += found.low <= 1.2 <= found.high
    assert held >= 0.93 * times


def test_chances_are_those_of_scipys_t_test():
    rng = np.random.default_rng(8)
    for n in (2, 5, 8):
        values = rng.normal(0.01, 0.02, n)
        assert chance(values.tolist()) == pytest.approx(ttest_1samp(values, 0).pvalue)
    assert (chance([0.0, 0.0]), chance([0.1, 0.1]), chance([0.1])) == (1, 0, 1)


@pytest.mark.parametrize(("n", "level"), [(5, 0.95), (8, 0.95), (8, joint(45))])
def test_what_is_detectable_is_found_four_times_in_five(n, level):
    rng = np.random.default_rng(9)
    sample = rng.normal(0, 1, n)
    gap = detectable(((sample - sample.mean()) / sample.std(ddof=1)).tolist(), level)  # of a scatter of 1
    found = [mean_interval(row, level).low > 0 for row in rng.normal(gap, 1, (2000, n)).tolist()]
    assert np.mean(found) == pytest.approx(0.8, abs=0.03)


def test_one_value_detects_nothing():
    assert math.isnan(detectable([0.5]))


@pytest.mark.parametrize(
    ("gap", "count"),
    [
        (1.0, 7),  # by a table of t: 2.447 / sqrt(7) is 0.92, and 2.571 / sqrt(6) is 1.05
        (0.5, 18),  # 2.110 / sqrt(18) is 0.497, and 2.120 / sqrt(17) is 0.514
        (0.01, None),
    ],
)
def test_so_many_values_are_enough_to_keep_an_interval_from_an_edge(gap, count):
    scattered = [-1.0, 0.0, 1.0]  # of a standard deviation of 1
    assert enough(scattered, gap) == count
    assert enough([7 + 3 * one for one in scattered], 3 * gap) == count
