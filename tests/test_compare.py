"""Two sides against each other: what a word names, which words come out, and what is refused."""

import pytest

from grape_bench.cell import AccuracyCell, CostCell
from grape_bench.compare import versus
from grape_bench.errors import UserError
from grape_bench.record import AccuracyReading, CurvePoint, MemoryReading, TimeReading
from grape_bench.score import Score

BASE = [10.0, 10.2, 9.9, 10.1, 10.0, 9.8, 10.1, 10.0, 10.2, 9.9]


def cost(encoding="rope", metric="forward_ms", length=128):
    return CostCell(metric=metric, encoding=encoding, length=length)


def times(factor=1.0):
    samples = tuple(factor * one for one in BASE)
    return TimeReading(samples_ms=samples, wall_ms=samples, clock="process_time")


def accuracy(encoding, seed, right):
    cell = AccuracyCell(task="registers", encoding=encoding, seed=seed, train_length=64, test_lengths=(64,))
    reading = AccuracyReading(
        headline="recall",
        scores=(Score(length=64, group="recall", correct=right, total=1000, blind=1 / 3, chance=0.1),),
        curve=(CurvePoint(step=1, loss=1.0, accuracy={"recall": 0.5}),),
        data_sha="0", parameters=1, lr=1.0, train_s=1.0, train_cpu_s=1.0,
    )  # fmt: skip
    return cell, reading


@pytest.fixture
def compare(make_record):
    def run(rows, first, second, *, margin=None, force=False):
        records = [make_record(cell, reading=reading, **more) for cell, reading, more in rows]
        return versus(records, first, second, margin=margin, force=force)

    return run


def words(found):
    return [row.comparison.word for row in found.rows]


def test_two_encodings_of_one_block_are_paired_round_by_round(compare):
    found = compare([(cost("rope"), times(), {}), (cost("t5"), times(1.5), {})], "rope", "t5")
    (row,) = found.rows
    assert row.comparison.paired
    assert row.comparison.interval.mid == pytest.approx(1.5)
    assert words(found) == ["slower"]
    assert found.regressed


@pytest.mark.parametrize(("factor", "word"), [(0.8, "faster"), (1.3, "slower"), (1.0, "same"), (1.03, "unclear")])
def test_runs_get_one_of_four_words(compare, factor, word):
    rows = [
        (cost(), times(), {"run": "20240101-aaaa", "block_run": "one"}),
        (cost(), times(factor), {"run": "20240102-bbbb", "block_run": "two"}),
    ]
    found = compare(rows, "20240101", "20240102")
    assert words(found) == [word]
    assert not found.rows[0].comparison.paired
    assert found.regressed == (word == "slower")


def test_commits_are_named_by_the_beginning_of_their_hash(compare, environment):
    old, new = (environment.model_copy(update={"commit": letter * 40}) for letter in "ab")
    rows = [
        (cost(), times(), {"environment": old, "block_run": "one"}),
        (cost(), times(), {"environment": new, "block_run": "two"}),
    ]
    assert words(compare(rows, "aaaaaaa", "bbbbbbb")) == ["same"]
    with pytest.raises(UserError, match="name no encodings, runs or commits"):
        compare(rows, "aaaaaa", "bbbbbb")  # six digits are too few


@pytest.mark.parametrize("key", ["device", "cpu", "torch", "threads", "tf32"])
def test_unlike_environments_are_refused_by_the_name_of_the_key(compare, environment, key):
    other = environment.model_copy(update={key: 7 if key == "threads" else True if key == "tf32" else "another"})
    rows = [
        (cost(), times(), {"run": "aaa", "block_run": "one"}),
        (cost(), times(), {"run": "bbb", "block_run": "two", "environment": other}),
    ]
    with pytest.raises(UserError, match=f"not comparable: {key} differs"):
        compare(rows, "aaa", "bbb")
    forced = compare(rows, "aaa", "bbb", force=True)
    assert f"forced although {key} differs" in forced.text()


def test_accuracies_are_compared_by_seed_whatever_the_environment(compare, environment):
    other = environment.model_copy(update={"torch": "another"})
    rows = [(*accuracy("rope", seed, 800 + 20 * seed), {}) for seed in range(5)]
    rows += [(*accuracy("t5", seed, 700 + 20 * seed), {"environment": other}) for seed in range(5)]
    found = compare(rows, "rope", "t5")
    assert words(found) == ["worse"]
    assert found.rows[0].comparison.interval.mid == pytest.approx(-0.1)
    assert "-0.100" in found.text()


def test_memory_that_grows_counts_as_a_regression(compare):
    cells = cost("rope", "peak_mib"), cost("t5", "peak_mib")
    rows = [(cell, MemoryReading(peak_mib=peak), {}) for cell, peak in zip(cells, (10.0, 20.0), strict=True)]
    found = compare(rows, "rope", "t5")
    assert words(found) == ["larger"]
    assert found.regressed


def test_the_margin_is_the_callers(compare):
    rows = [(cost("rope"), times(), {}), (cost("t5"), times(1.08), {})]
    assert words(compare(rows, "rope", "t5", margin=0.1)) == ["same"]
    assert words(compare(rows, "rope", "t5", margin=0.02)) == ["slower"]


def test_spellings_of_an_encoding_name_the_same_records(compare):
    rows = [(cost("rope(base=1000000)"), times(), {}), (cost("t5"), times(), {})]
    assert words(compare(rows, "rope(base=1e6)", "t5")) == ["same"]


def test_an_encoding_against_a_run_is_refused_with_a_sentence(compare):
    rows = [(cost("rope"), times(), {"run": "aaa"})]
    with pytest.raises(UserError, match="rope is an encoding, and aaa is none with records"):
        compare(rows, "rope", "aaa")


def test_trainings_without_a_seed_in_common_are_no_pair(compare):
    rows = [(*accuracy("rope", 0, 800), {}), (*accuracy("t5", 1, 700), {})]
    with pytest.raises(UserError, match="share no cell with a record on both sides, nor a seed"):
        compare(rows, "rope", "t5")
    found = compare([*rows, (cost("rope"), times(), {}), (cost("t5"), times(), {})], "rope", "t5")
    assert [row.what.split()[0] for row in found.rows] == ["forward_ms"]


def test_trainings_on_two_texts_are_refused(compare):
    sides = [(encoding, *accuracy(encoding, 0, 800)) for encoding in ("rope", "t5")]
    rows = [(cell, reading.model_copy(update={"text_sha": f"of {name}"}), {}) for name, cell, reading in sides]
    with pytest.raises(UserError, match=r"rope and t5 cannot be compared: .* texts of rope and of t5"):
        compare(rows, "rope", "t5")


def test_a_word_is_read_once_however_many_records_there_are(compare, monkeypatch):
    from grape_bench.compare import Expression

    read = []
    monkeypatch.setattr(Expression, "parse", lambda text, known: read.append(text) or text)
    compare(
        [(cost(encoding, length=2**n), times(), {}) for n in range(5, 9) for encoding in ("rope", "t5")], "rope", "t5"
    )
    assert read == ["rope", "t5"]


def test_the_text_ends_with_a_table_and_the_four_words(compare):
    text = compare([(cost("rope"), times(), {}), (cost("t5"), times(1.5), {})], "rope", "t5").text()
    assert "t5 against rope, 95 % interval" in text
    assert "0 faster, 1 slower, 0 same, 0 unclear" in text
