"""The comparer: which word it says, and when it refuses to say one."""

import numpy as np
import pytest

from grape_bench.cell import AccuracyCell, CostCell
from grape_bench.interval import Interval
from grape_bench.ranking import by_seed, compare, compare_scores, judge, seed_of
from grape_bench.record import AccuracyReading, MemoryReading, TimeReading
from grape_bench.score import Score

COST = CostCell(metric="forward_ms", encoding="rope", length=128)


def _time(samples):
    return TimeReading(samples_ms=tuple(samples), wall_ms=tuple(samples), clock="process_time")


def _score(*groups, headline="order"):
    scores = tuple(
        Score(length=length, group=group, correct=correct, total=1000, blind=0.25, chance=0.1)
        for length, group, correct in groups
    )
    return AccuracyReading(
        headline=headline, scores=scores, curve=(), data_sha="0", parameters=1, lr=6e-3, train_s=1, train_cpu_s=1
    )


@pytest.fixture
def make_training(make_record):
    def make(seed, correct, **changes):
        cell = AccuracyCell(
            task="short_text",
            encoding="rope",
            seed=seed,
            train_length=48,
            test_lengths=(48, 96),
            **changes.pop("cell", {}),
        )
        return make_record(cell, reading=_score((48, "order", correct), (96, "order", correct - 100)), **changes)

    return make


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (0.98, 1.02, "same"),
        (1.031, 1.2, "slower"),
        (1.01, 1.02, "same"),  # surely slower, and by less than anyone asked about
        (1.01, 1.05, "unclear"),
        (0.5, 2.0, "unclear"),
        (0.8, 0.96, "faster"),
        (float("nan"), float("nan"), "unclear"),
    ],
)
def test_the_word_is_where_the_interval_lies(low, high, word):
    assert judge(Interval(low, 1.0, high), (1 / 1.03, 1.03), ("faster", "slower")) == word


@pytest.mark.parametrize(("factor", "word"), [(1.2, "slower"), (0.8, "faster"), (1.0, "same")])
def test_times_of_one_process_pair_round_by_round(make_record, factor, word):
    drift = np.exp(np.random.default_rng(0).normal(0, 0.5, 40))
    found = compare(
        [make_record(COST, reading=_time(drift * factor))],
        [make_record(COST, reading=_time(drift))],
    )
    assert (found.word, found.paired) == (word, True)
    assert found.interval.mid == pytest.approx(factor)


def test_times_of_two_days_are_compared_and_called_unpaired(make_record):
    samples = np.random.default_rng(0).normal(10, 0.1, 40)
    found = compare(
        [make_record(COST, block_run="new", reading=_time(samples * 1.5))],
        [make_record(COST, block_run="old", reading=_time(samples))],
    )
    assert (found.word, found.paired) == ("slower", False)


def test_several_processes_are_pooled(make_record):
    rng = np.random.default_rng(1)
    base = {run: rng.normal(10, 1, 30) for run in ("one", "two", "three")}
    found = compare(
        [make_record(COST, block_run=run, reading=_time(each * 2)) for run, each in base.items()],
        [make_record(COST, block_run=run, reading=_time(each)) for run, each in reversed(base.items())],
    )
    assert found.interval.n == 90
    assert found.interval.mid == pytest.approx(2)


def test_an_encoding_against_itself_is_hardly_ever_faster_or_slower(make_record):
    rng = np.random.default_rng(2)
    words = []
    for trial in range(300):
        noise = rng.choice([0.01, 0.05, 0.2])
        a, b = (
            [make_record(COST, block_run=f"{trial}", reading=_time(np.exp(rng.normal(0, noise, 40))))] for _ in range(2)
        )
        words.append(compare(a, b).word)
    assert sum(word in ("same", "unclear") for word in words) >= 297


def test_unlike_environments_are_refused_by_name(make_record, environment):
    other = environment.model_copy(update={"torch": "1.0"})
    with pytest.raises(ValueError, match=r"torch differs: 2\.99\.0 and 1\.0"):
        compare([make_record(COST)], [make_record(COST, environment=other)])


def test_memory_is_a_plain_ratio(make_record):
    peak = CostCell(metric="peak_mib", encoding="rope", length=128)
    a, b, nothing = ([make_record(peak, reading=MemoryReading(peak_mib=mib))] for mib in (512, 256, 0))
    assert compare(a, b).interval == Interval(2, 2, 2)
    assert [compare(*pair).word for pair in ((a, b), (b, a), (a, a), (nothing, nothing))] == [
        "larger",
        "smaller",
        "same",
        "same",
    ]
    assert compare(a, nothing).word == "larger"


def test_unlike_readings_are_refused(make_record):
    peak = make_record(CostCell(metric="peak_mib", encoding="rope", length=128))
    with pytest.raises(ValueError, match="a time and a memory reading"):
        compare([make_record(COST)], [peak])
    with pytest.raises(ValueError, match="readings of one kind"):
        compare([make_record(COST), peak], [peak])
    with pytest.raises(ValueError, match="readings of one kind"):
        compare([], [peak])


def test_accuracies_pair_seed_by_seed(make_training):
    # Seeds differ by far more than the encodings: 0.05 on each seed, to a thousandth.
    base = {0: 500, 1: 700, 2: 900}
    a = [make_training(seed, correct + 50 + seed) for seed, correct in base.items()]
    b = [make_training(seed, correct) for seed, correct in base.items()]
    found = compare(a, b)
    assert found.word == "better"
    assert found.interval.mid == pytest.approx(0.051)
    assert found.interval.half == pytest.approx(4.30265 * 0.001 / np.sqrt(3), rel=1e-4)
    assert compare(b, a, length=96, group="order").word == "worse"


def test_one_seed_in_common_is_unclear_and_none_is_refused(make_training):
    assert compare([make_training(0, 900)], [make_training(0, 300), make_training(1, 300)]).word == "unclear"
    with pytest.raises(ValueError, match="share no seed"):
        compare([make_training(0, 900)], [make_training(1, 300)])


def test_the_same_seed_again_is_a_replicate_and_the_latest_counts(make_training):
    first = make_training(0, 300, at="2024-01-01T00:00:00Z")
    again = make_training(0, 600, at="2024-02-01T00:00:00Z")
    assert by_seed([again, first]) == {0: again}


def test_seeds_of_bootstraps_come_from_names():
    assert seed_of("a", "b") == seed_of("a", "b") != seed_of("ab")


def _gap(rng, seeds, gap):
    """A gap over 0 by seed, scattering by 1.4 points."""
    return dict(enumerate(rng.normal(gap, 0.014, seeds))), dict.fromkeys(range(seeds), 0.0)


def test_a_pair_declared_beforehand_is_found_at_eight_seeds():
    rng = np.random.default_rng(3)
    words = [compare_scores(*_gap(rng, 8, 0.02), margin=0).word for _ in range(1000)]
    assert words.count("better") >= 850


def test_identical_encodings_are_the_same_or_unclear():
    rng = np.random.default_rng(4)
    words = [compare_scores(*_gap(rng, 8, 0.0)).word for _ in range(1000)]
    assert words.count("same") + words.count("unclear") >= 990
    assert words.count("same") > 500  # and the margin is wide enough to say so


def test_more_comparisons_widen_an_interval():
    rng = np.random.default_rng(5)
    pair = _gap(rng, 8, 0.02)
    assert compare_scores(*pair, family=45).interval.half > 2 * compare_scores(*pair).interval.half


def _lost(make_training, seed, nats, text="aa"):
    made = make_training(seed, 500)
    scores = (Score(length=48, group="order", correct=5, total=10, blind=0.3, chance=0.1, nats=nats, blind_nats=3.0),)
    return made.model_copy(update={"reading": made.reading.model_copy(update={"scores": scores, "text_sha": text})})


def test_of_losses_the_smaller_is_better(make_training):
    """Losses of 1.5 and 1.6 nats over ten questions, seed by seed a little off."""
    one = [_lost(make_training, seed, 15.0 + 0.01 * seed) for seed in range(5)]
    other = [_lost(make_training, seed, 16.0 - 0.01 * seed) for seed in range(5)]
    found = compare(one, other)
    assert found.word == "better"
    assert found.interval.mid == pytest.approx(0.096)


def test_losses_on_two_texts_are_not_compared(make_training):
    with pytest.raises(ValueError, match="of texts aa and bb"):
        compare([_lost(make_training, 0, 15.0)], [_lost(make_training, 0, 15.0, "bb")])
