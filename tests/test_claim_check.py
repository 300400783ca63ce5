"""What a claim may not say: each is refused with its line and key."""

import pytest

from grape_bench.errors import UserError
from grape_bench.suite import parse

HEAD = """title: t
encodings: [none, rope, alibi]
cost:
  - {scope: model, lengths: [64, 128], metrics: [train_step_ms, tokens_per_second], encodings: [none, rope]}
accuracy:
  - {task: registers, train_length: 64, test_lengths: [64, 128]}
claims:
"""
ABOVE = "relation: above, encodings: [rope], against: [none]"
SAME = "relation: same, encodings: [rope, none]"


def suite(*claims, ids="ABC"):
    lines = [f"  - {{id: {id_}, says: so, {one}}}\n" for id_, one in zip(ids, claims, strict=False)]
    return parse(HEAD + "".join(lines), "t.yaml")


def test_what_the_suite_measures_may_be_claimed():
    found = suite(ABOVE, f"{ABOVE}, at: 2x, task: registers, group: cmp", f"{SAME}, metric: train_step_ms, at: 128")
    assert [one.at for one in found.claims] == [None, "2x", 128]
    assert [one.length(64) for one in found.claims] == [64, 128, 128]


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ("relation: above, encodings: [rope]", "relation: above what? Give the key 'against'"),
        ("relation: same, encodings: [rope]", "encodings: same needs at least two encodings"),
        (
            "relation: order, encodings: [rope, none], against: [alibi]",
            "against: order is a relation of 'encodings' alone",
        ),
        ("relation: above, encodings: [rope], against: [rope]", "against[0]: rope is among 'encodings' already"),
        ("relation: sam, encodings: [rope, none]", "relation: the text 'sam' is not allowed. Did you mean 'same'?"),
        ("relation: same, encodings: [rope, t5]", "encodings[1]: 't5' is not among the suite's encodings"),
        (
            "relation: same, encodings: [rope, rop]",
            "encodings[1]: there is no encoding named 'rop'. Did you mean 'rope'?",
        ),
        (f"{ABOVE}, metric: acuracy", "metric: the suite does not measure 'acuracy'. Did you mean 'accuracy'?"),
        (f"{SAME}, metric: peak_mib", "metric: the suite does not measure 'peak_mib'."),
        (f"{SAME}, metric: tokens_per_second", "metric: tokens_per_second follows from train_step_ms; claim that"),
        (
            f"{SAME}, metric: train_step_ms, scope: attention",
            "scope: no entry of the suite measures that; it has train_step_ms of scope model",
        ),
        (
            f"{SAME}, metric: train_step_ms, heads: 32",
            "heads: no entry of the suite measures that; it has train_step_ms of heads 8",
        ),
        (f"{SAME}, metric: train_step_ms, backend: eager", "backend: no entry of the suite measures that"),
        (
            f"{SAME}, metric: train_step_ms, against_backend: eager",
            "against_backend: against which one? Give the key 'backend' too",
        ),
        (
            f"{SAME}, metric: train_step_ms, backend: sdpa, against_backend: eager",
            "encodings[0]: rope is not measured so by eager",
        ),
        (
            f"{SAME}, metric: train_step_ms, backend: sdpa, against_backend: sdpa",
            "against_backend: that is the backend of 'encodings'; remove this key",
        ),
        (f"{ABOVE}, against_backend: sdpa", "against_backend: accuracy has no against_backend; remove this key"),
        (f"{SAME}, metric: train_step_ms, at: 2x", "at: train_step_ms has no training length; give tokens, not 2x"),
        (f"{SAME}, metric: train_step_ms, at: 65", "at: no entry of the suite measures that; it has 64, 128 tokens"),
        (f"{SAME}, metric: train_step_ms, task: registers", "task: train_step_ms has no task; remove this key"),
        (f"{ABOVE}, heads: 8", "heads: accuracy has no heads; remove this key"),
        (f"{ABOVE}, task: short_text", "task: the suite does not train short_text. Allowed: registers."),
        (f"{ABOVE}, at: 3x", "at: no entry of the suite measures that; it has 64, 128 tokens"),
        (f"{ABOVE}, at: twice", "at: must be tokens, or a multiple of the training length such as 2x, not 'twice'"),
        (f"{ABOVE}, at: 0", "at: must be tokens"),
        (f"{ABOVE}, margin: -1", "margin: must be more than -1, not -1"),
        (f"{SAME}, margin: -0.1", "margin: nothing is the same by less than 0; give at least 0, not -0.1"),
        (f"{ABOVE}, margn: 1", "margn: there is no key 'margn' here. Did you mean 'margin'?"),
        (
            "relation: same, encodings: [rope, alibi], metric: train_step_ms",
            "encodings: no entry of the suite measures all of these side by side",
        ),
    ],
)
def test_what_a_suite_does_not_measure_is_refused(claim, said):
    with pytest.raises(UserError) as caught:
        suite(claim)
    assert f"t.yaml:8: claims[0].{said}" in str(caught.value)


TRAINED = """title: t
encodings: [none, rope, alibi]
accuracy:
  - {name: fixed, task: registers, train_length: 64, test_lengths: [64, 128]}
  - {name: mixed, task: registers, train_length: 64, test_lengths: [64], training: {shortest: 28, steps: 500},
     encodings: [none, rope]}
claims:
"""
BESIDE = "relation: above, encodings: [rope], entry: mixed, against_entry: fixed"


def trained(claim):
    return parse(f"{TRAINED}  - {{id: A, says: so, {claim}}}\n", "t.yaml")


def test_entries_steps_and_gains_may_be_claimed():
    for claim in (
        BESIDE,
        f"{BESIDE}, against: [alibi]",
        f"{BESIDE}, metric: loss, step: 500",
        "relation: same, encodings: [rope], entry: mixed, against_entry: fixed",
        "relation: diminishing, encodings: [none, rope, alibi], at: 2x",
        f"{ABOVE}, entry: fixed, margin: -0.02, group: cmp",
    ):
        assert trained(claim).claims[0].id == "A"


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        (f"{ABOVE}, group: cpm", "group: no task of these asks for 'cpm'. Did you mean 'cmp'? Allowed: cmp, recall."),
        (f"{ABOVE}, entry: fixd", "entry: no entry of the suite is named 'fixd'. Did you mean 'fixed'?"),
        (
            f"{ABOVE}, against_entry: other",
            "against_entry: no entry of the suite is named 'other'. Allowed: fixed, mixed.",
        ),
        (f"{BESIDE}, at: 2x", "at: no entry of the suite measures that; it has 64 tokens"),
        (
            "relation: above, encodings: [rope], entry: fixed, against_entry: mixed, at: 2x",
            "against_entry: mixed is not tested at 128 tokens",
        ),
        (
            "relation: above, encodings: [rope], against: [alibi], entry: fixed, against_entry: mixed",
            "against[0]: mixed does not train alibi",
        ),
        (
            "relation: above, encodings: [alibi], entry: mixed, against_entry: fixed",
            "encodings: no entry of the suite measures all of these side by side",
        ),
        (
            f"{ABOVE}, entry: fixed, against_entry: fixed",
            "against_entry: that is the entry of 'encodings'; remove this key",
        ),
        ("relation: diminishing, encodings: [none, rope]", "encodings: diminishing needs at least three encodings"),
        (
            "relation: order, encodings: [none, rope], entry: fixed, against_entry: mixed",
            "against_entry: order is a relation of 'encodings' alone; remove this key",
        ),
        (f"{ABOVE}, metric: loss, at: 2x", "at: a loss is of the training, at its own lengths; remove this key"),
        (f"{ABOVE}, metric: loss, group: cmp", "group: loss has no group; remove this key"),
        (f"{ABOVE}, step: 5", "step: accuracy has no step; remove this key"),
        (f"{ABOVE}, metric: loss, step: 501", "step: a training of these ends at step 500"),
    ],
)
def test_what_no_training_shows_is_refused(claim, said):
    with pytest.raises(UserError) as caught:
        trained(claim)
    assert f"t.yaml:8: claims[0].{said}" in str(caught.value)


def test_ratios_have_no_gains():
    with pytest.raises(UserError, match=r"claims\[0\]\.relation: train_step_ms is compared by ratios"):
        suite("relation: diminishing, encodings: [none, rope, alibi], metric: train_step_ms")


def test_an_id_is_a_word_and_stands_once():
    with pytest.raises(UserError, match=r"t\.yaml:9: claims\[1\]\.id: 'A' is the id of claims\[0\] already"):
        suite(ABOVE, ABOVE, ids="AA")
    with pytest.raises(UserError, match=r"t\.yaml:8: claims\[0\]\.id: must be text of the form"):
        suite(ABOVE, ids=["a b"])
