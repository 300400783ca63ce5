"""Claims against records: which pairs are meant, what an interval says, and when nothing is said."""

import pytest

from grape_bench.claims import text, verdicts
from grape_bench.evidence import judge, pairs
from grape_bench.interval import Interval
from grape_bench.ranking import Comparison
from grape_bench.record import CurvePoint, MemoryReading, Score
from grape_bench.registry import Registry
from grape_bench.suite import expand, parse
from grape_bench.suite_claim import Claim
from grape_bench.view import View

NAN = float("nan")


def claim(relation, encodings, **changes):
    return Claim.model_construct(id="C", says="so", relation=relation, encodings=encodings, **changes)


def comparison(low, high, *, difference=True):
    return Comparison("unclear", Interval(low, (low + high) / 2, high), 0, difference=difference)


@pytest.fixture
def judged(make_fabricated):
    """The verdicts on claims from fabricated records of so many seeds."""

    def make(*claims, seeds=8, records=None):
        made = make_fabricated(seeds=tuple(range(seeds)))
        suite = made.suite.model_copy(update={"claims": claims})
        return verdicts(View.of(suite, made.cells, made.records if records is None else records, Registry("metrics")))

    return make


@pytest.fixture
def trained(make_fabricated, make_record):
    """The record of a training with so many right of 1000 at each length, and a curve at steps 25, 50 and 75."""
    cells = make_fabricated(encodings=("none", "rope", "rope + clamp"), seeds=tuple(range(8))).cells
    known = {(one.encoding, one.seed): one for one in cells if one.kind == "accuracy" and one.task == "registers"}

    def make(encoding, seed, correct, *, loss=(3.0, 2.0, 1.0), cell=None):
        cell = cell or known[encoding, seed]
        scores = [
            Score(length=length, group="recall", correct=correct, total=1000, blind=1 / 3, chance=0.1)
            for length in cell.test_lengths
        ]
        curve = [CurvePoint(step=25 * (i + 1), loss=one, accuracy={"recall": 0.9}) for i, one in enumerate(loss)]
        reading = make_record(cell).reading.model_copy(update={"scores": tuple(scores), "curve": tuple(curve)})
        return make_record(cell, reading=reading)

    return make


def test_pairs_are_who_is_to_be_above_whom():
    assert pairs(claim("above", ("a", "b"), against=("c",))) == (("a", "c"), ("b", "c"))
    assert pairs(claim("below", ("a", "b"), against=("c",))) == (("c", "a"), ("c", "b"))
    assert pairs(claim("order", ("a", "b", "c"))) == (("b", "a"), ("c", "b"))
    assert pairs(claim("same", ("a", "b", "c"))) == (("a", "b"), ("a", "c"), ("b", "c"))
    assert pairs(claim("same", ("a", "b"), against=("c",))) == (("a", "c"), ("b", "c"))


@pytest.mark.parametrize(
    ("relation", "margin", "low", "high", "word"),
    [
        ("above", None, 0.01, 0.03, "supported"),
        ("above", None, -0.03, -0.01, "refuted"),
        ("above", None, -0.01, 0.01, "undecided"),
        ("above", 0.05, 0.01, 0.03, "refuted"),  # surely better, and surely by less than was claimed
        ("above", 0.05, 0.01, 0.06, "undecided"),
        ("above", -0.02, -0.01, 0.03, "supported"),  # no worse by more than that
        ("above", -0.02, -0.04, -0.03, "refuted"),
        ("above", -0.02, -0.03, 0.03, "undecided"),
        ("above", None, NAN, NAN, "undecided"),
        ("same", None, -0.01, 0.015, "supported"),
        ("same", None, 0.01, 0.03, "undecided"),
        ("same", None, 0.021, 0.03, "refuted"),
        ("same", 0.05, 0.021, 0.03, "supported"),
    ],
)
def test_the_verdict_is_where_the_interval_lies(relation, margin, low, high, word):
    assert judge(claim(relation, ("a", "b"), margin=margin), comparison(low, high)) == word


@pytest.mark.parametrize(
    ("relation", "margin", "low", "high", "word"),
    [
        ("above", None, 1.1, 1.2, "supported"),
        ("above", 1, 1.1, 1.2, "refuted"),
        ("above", None, 1.0, 1.0, "refuted"),  # equal memory is not more memory
        ("same", None, 0.99, 1.02, "supported"),
        ("same", 0.09, 0.92, 1.09, "supported"),
        ("same", 0.09, 1.1, 1.2, "refuted"),
    ],
)
def test_costs_are_judged_by_their_ratio(relation, margin, low, high, word):
    assert judge(claim(relation, ("a", "b"), margin=margin), comparison(low, high, difference=False)) == word


def test_a_claim_stands_with_all_its_pairs_and_falls_with_one(judged):
    made = {"task": "registers", "at": "2x"}
    right, wrong, mixed = judged(
        claim("order", ("sinusoidal", "rope", "rope + clamp"), **made),
        claim("order", ("rope", "sinusoidal"), **made),
        claim("order", ("sinusoidal", "rope", "t5"), **made),
    )
    assert [one.word for one in (right, wrong, mixed)] == ["supported", "refuted", "refuted"]
    assert [one.word for one in mixed.evidence] == ["supported", "refuted"]
    assert len(right.records) == 3 * 8
    assert right.evidence[0].what == "rope above sinusoidal in recall of registers at 128"


def test_an_undecided_pair_says_how_many_seeds_would_decide_it(judged, trained):
    right = {
        "none": [949, 949, 949, 949, 949],
        "rope": [939, 949, 959, 969, 979],
        "rope + clamp": [900, 925, 950, 975, 1000],
    }
    records = [trained(one, seed, each) for one, all_ in right.items() for seed, each in enumerate(all_)]
    few, many, same = judged(
        claim("above", ("rope",), against=("none",), task="registers"),
        claim("above", ("rope + clamp",), against=("none",), task="registers"),
        claim("same", ("rope", "none"), task="registers", margin=0.02),
        records=records,
    )
    # Gaps of mean 0.010 and sd 0.0158: by a table of t, 2.179 sd / sqrt(13) is 0.0096, and 2.201 sd / sqrt(12) 0.01004.
    assert few.evidence[0].remark == "some 13 seeds would decide it"
    assert many.evidence[0].remark == "100 seeds would not decide it"
    assert same.evidence[0].remark == "some 13 seeds would decide it"  # 0.010 from the nearer margin


def test_too_few_seeds_decide_nothing_and_say_so(judged):
    (found,) = judged(claim("above", ("rope",), against=("none",), task="registers"), seeds=4)
    assert found.word == "undecided"
    assert found.evidence[0].remark == "4 of 5 seeds, none did not learn in 4 of 4"
    assert found.evidence[0].comparison.interval.low > 0.5


def test_without_records_a_claim_is_undecided(judged):
    accuracy = claim("above", ("rope",), against=("none",), task="registers")
    cost = claim("same", ("rope", "none"), metric="train_step_ms")
    found = judged(accuracy, cost, records=[])
    assert [one.word for one in found] == ["undecided", "undecided"]
    assert "share no seed" in found[0].evidence[0].remark
    assert found[1].evidence[0].remark == "rope is missing, none is missing"


def test_an_unknown_group_is_undecided(judged):
    (found,) = judged(claim("above", ("rope",), against=("t5",), group="nonesuch", task="registers"))
    assert (found.word, found.records) == ("undecided", ())


def test_a_cost_is_judged_at_each_length_and_names_its_machine(judged):
    (found,) = judged(claim("above", ("rope + clamp",), against=("none",), metric="train_step_ms", margin=0.2))
    assert (found.word, found.where) == ("supported", "fabricated-cpu-2-cores")
    assert [one.what.rpartition(" ")[2] for one in found.evidence] == ["64", "128"]
    (found,) = judged(claim("above", ("rope + clamp",), against=("none",), metric="peak_mib", scope="model", at=128))
    assert [one.what for one in found.evidence] == ["rope + clamp above none in peak_mib of the model at 128"]


BACKENDS = """title: t
encodings: [rope, alibi]
cost:
  - {lengths: [64, 128], heads: [4], backends: [sdpa, eager], metrics: [peak_mib]}
claims:
  - {id: A, says: so, relation: below, encodings: [rope, alibi], backend: sdpa, against_backend: eager,
     metric: peak_mib, at: 64}
  - {id: B, says: so, relation: above, encodings: [rope], against: [alibi], backend: sdpa, against_backend: eager,
     metric: peak_mib}
"""


def test_a_cost_is_held_against_that_of_another_backend(make_record):
    suite = parse(BACKENDS, "t.yaml")
    peaks = {("sdpa", "rope"): 2.0, ("sdpa", "alibi"): 3.0, ("eager", "rope"): 8.0, ("eager", "alibi"): 6.0}
    cells = expand(suite)
    records = [make_record(one, reading=MemoryReading(peak_mib=peaks[one.backend, one.encoding])) for one in cells]
    below, above = verdicts(View.of(suite, cells, records, Registry("metrics")))
    assert (below.word, above.word) == ("supported", "refuted")
    assert [one.comparison.interval.mid for one in below.evidence] == [4.0, 2.0]
    assert below.evidence[0].what.startswith("rope (eager) above rope (sdpa) in peak_mib of the attention at 64")
    assert [one.comparison.interval.mid for one in above.evidence] == [pytest.approx(1 / 3)] * 2  # at both lengths
    assert above.evidence[0].what.startswith("rope (sdpa) above alibi (eager)")


def test_what_has_no_figure_is_named(judged):
    (found,) = judged(claim("above", ("alibi",), against=("none",), metric="train_step_ms", at=64))
    assert (found.word, found.evidence[0].remark) == ("undecided", "alibi is missing")


def test_settings_are_named_where_there_are_several(judged):
    (found,) = judged(claim("above", ("t5",), against=("none",), metric="forward_ms", at=256))
    assert len(found.evidence) == 4
    assert "(bfloat16, 4 heads of 64" in found.evidence[2].what
    (found,) = judged(
        claim("above", ("t5",), against=("none",), metric="forward_ms", heads=4, dtype="bfloat16", backend="sdpa")
    )
    assert len(found.evidence) == 3  # its lengths


def test_the_text_has_every_pair_every_record_and_a_count(judged):
    found = judged(claim("above", ("rope",), against=("sinusoidal", "none"), task="registers", at="2x"))
    said = text(found)
    assert all(one.what in said for one in found[0].evidence)
    assert all(one in said for one in found[0].records)
    assert said.endswith("1 supported, 0 refuted, 0 undecided")


def test_steps_that_gain_less_and_less_are_differences_of_differences():
    of = claim("diminishing", ("a", "b", "c", "d"))
    assert pairs(of) == (("b", "c"), ("c", "d"))


def test_a_first_step_that_gains_most_is_diminishing(judged, trained):
    right = {"none": 400, "rope": 700, "rope + clamp": 750}
    found = judged(
        claim("diminishing", ("none", "rope", "rope + clamp"), task="registers"),
        claim("diminishing", ("none", "rope", "rope + clamp"), task="registers", margin=0.3),
        records=[trained(one, seed, level + seed) for one, level in right.items() for seed in range(6)],
    )
    assert [one.word for one in found] == ["supported", "refuted"]
    evidence = found[0].evidence[0]
    assert evidence.what == "rope over none above rope + clamp over rope in recall of registers at 64"
    # 0.3 for the first step and 0.05 for the second; seeds shift all three alike.
    assert evidence.comparison.interval.mid == pytest.approx(0.25)
    assert len(evidence.records) == 3 * 6


def test_a_loss_is_that_of_the_steps_among_which_the_step_is(judged, trained):
    levels = {"none": (3.0, 2.8, 0.5), "rope": (3.0, 2.0, 0.6)}
    records = [trained(one, seed, 400, loss=loss) for one, loss in levels.items() for seed in range(5)]
    of = {"task": "registers", "metric": "loss", "encodings": ("none",), "against": ("rope",)}
    early, same, late, last = judged(
        claim("above", step=26, **of),
        claim("above", step=25, margin=-0.05, **of),
        claim("above", step=75, **of),
        claim("below", **of),
        records=records,
    )
    assert [one.word for one in (early, same, late, last)] == ["supported", "supported", "refuted", "supported"]
    assert early.evidence[0].comparison.interval.mid == pytest.approx(0.8)
    assert early.evidence[0].what == "none above rope in loss of registers at step 26"
    assert early.evidence[0].remark == ""  # who did not learn has a loss all the same


ENTRIES = """title: t
encodings: [rope, alibi]
seeds: [0, 1, 2, 3, 4]
accuracy:
  - {name: fixed, task: registers, train_length: 64, test_lengths: [64, 128]}
  - {name: mixed, task: registers, train_length: 64, test_lengths: [64, 128], training: {shortest: 28}}
claims:
  - {id: A, says: so, relation: above, encodings: [rope, alibi], entry: mixed, against_entry: fixed, at: 2x}
  - {id: B, says: so, relation: below, encodings: [rope, alibi], entry: mixed, against_entry: fixed, at: 2x}
  - {id: C, says: so, relation: above, encodings: [rope], against: [alibi], entry: mixed, against_entry: fixed}
  - {id: D, says: so, relation: same, encodings: [rope, alibi], entry: fixed}
"""


def test_two_entries_are_compared_by_their_names(trained):
    suite = parse(ENTRIES, "t.yaml")
    cells = expand(suite)
    records = [
        trained(one.encoding, one.seed, 500 + 200 * bool(one.training.shortest) + one.seed, cell=one) for one in cells
    ]
    found = verdicts(View.of(suite, cells, records, Registry("metrics")))
    assert [one.word for one in found] == ["supported", "refuted", "supported", "supported"]
    assert [one.what for one in found[0].evidence] == [
        f"{name} (mixed) above {name} (fixed) in recall of registers at 128" for name in ("rope", "alibi")
    ]
    assert found[0].evidence[0].comparison.interval.mid == pytest.approx(0.2)
    assert found[1].evidence[0].what == "rope (fixed) above rope (mixed) in recall of registers at 128"
    assert found[3].evidence[0].what == "rope the same as alibi in recall of registers (fixed) at 64"
    assert found[2].evidence[0].what == "rope (mixed) above alibi (fixed) in recall of registers at 64"
    kept = {one.id for one in cells if one.training.shortest is None}
    assert len(found[3].evidence) == 1
    assert {*found[3].records} == kept


def test_a_claim_enters_no_cell():
    plain = "title: t\nencodings: [none, rope]\nbaseline: none\naccuracy:\n"
    plain += "  - {task: registers, train_length: 64, test_lengths: [64, 128]}\n"
    claims = "claims:\n  - {id: C, says: so, relation: above, encodings: [rope], against: [none], at: 2x}\n"
    bare, claimed = parse(plain, "t.yaml"), parse(plain + claims, "t.yaml")
    assert len(claimed.claims) == 1
    assert [one.id for one in expand(bare)] == [one.id for one in expand(claimed)]
