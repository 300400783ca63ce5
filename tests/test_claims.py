"""Claims against records: which pairs are meant, what an interval says, and when nothing is said."""

import pytest

from grape_bench.claims import judge, pairs, text, verdicts
from grape_bench.interval import Interval
from grape_bench.ranking import Comparison
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


def test_a_claim_enters_no_cell():
    plain = "title: t\nencodings: [none, rope]\nbaseline: none\naccuracy:\n"
    plain += "  - {task: registers, train_length: 64, test_lengths: [64, 128]}\n"
    claims = "claims:\n  - {id: C, says: so, relation: above, encodings: [rope], against: [none], at: 2x}\n"
    bare, claimed = parse(plain, "t.yaml"), parse(plain + claims, "t.yaml")
    assert len(claimed.claims) == 1
    assert [one.id for one in expand(bare)] == [one.id for one in expand(claimed)]
