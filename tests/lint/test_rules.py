"""Each rule in a suite where it must fire, and in one nearby where it must not."""

import pytest

TRAINING = """
title: A test
encodings: [{encodings}]
seeds: [{seeds}]
accuracy:
  - task: registers
    train_length: {train}
    test_lengths: [{tests}]
    model: {{{model}}}
    training: {{{training}}}
    backend: {backend}
"""
COST = """
title: A test
encodings: [{encodings}]
cost:
  - lengths: [{lengths}]
    metrics: [{metrics}]
    heads: [{heads}]
    batch: [{batch}]
    causal: {causal}
    dtypes: [float32, bfloat16]
    backends: [{backend}]
"""
SMALL = "causal: false"
USUAL = {
    TRAINING: {"seeds": "0", "train": 64, "tests": "64", "model": SMALL, "training": "steps: 100", "backend": "sdpa"},
    COST: {"lengths": 64, "metrics": "peak_mib", "heads": 4, "batch": 1, "causal": "true", "backend": "sdpa"},
}
LONG = {"tests": "64, 128"}
CLAIM = "claims: [{id: C, says: s, relation: above, encodings: [rope], against: [none]%s}]\n"
SKIP = "skips: [{only: [metric=decode_ms, encoding=%s], reason: known}]\n"


def suite(template: str, encodings: str, options: dict[str, object], end: str = "") -> str:
    return template.format(**{**USUAL[template], "encodings": encodings, **options}) + end


FIRES = [
    ("GB101", TRAINING, "learned + alibi", {}),
    ("GB101", COST, "sinusoidal + layers(rope)", {}),
    ("GB101", COST, "sinusoidal + fourier + window", {}),
    ("GB102", TRAINING, "none, sinusoidal", LONG),
    ("GB102", TRAINING, "sinusoidal + window", LONG),
    ("GB103", TRAINING, "rope, learned", LONG),
    ("GB104", TRAINING, "rope, clamp", LONG),
    ("GB104", TRAINING, "rope, clamp(window=100)", {"tests": "64, 102"}),
    ("GB104", TRAINING, "rope, shaw + clamp", LONG),
    ("GB105", TRAINING, "rope + window(tokens=100)", LONG),
    ("GB105", TRAINING, "rope + clamp(window=16)", {}),
    ("GB106", TRAINING, "alibi, kerple", LONG),
    ("GB111", TRAINING, "t5", {}),
    ("GB111", TRAINING, "t5(max_distance=65)", {}),
    ("GB111", TRAINING, "rope + clamp(window=128)", {}),
    ("GB112", TRAINING, "rope(base=1e6)", {}),
    ("GB112", TRAINING, "yarn(base=5e5)", {"train": 100, "tests": "100"}),
    ("GB113", TRAINING, "\"rope + t5(max_distance=64, heads='shared')\"", {}),
    ("GB114", COST, "before_scale(clamp)", {}),
    ("GB115", TRAINING, "rope", {"training": "shortest: 16, even: true"}),
    ("GB121", COST, "rope + t5", {"lengths": 65536, "heads": 2, "batch": 1}),
    ("GB121", COST, "fox", {"lengths": 4096, "heads": 16, "batch": 17}),
    ("GB121", TRAINING, "alibi", {"tests": "64, 40000", "model": "heads: 4"}),
    ("GB122", COST, "fox", {"lengths": 1024, "heads": 8, "batch": 16}),
    ("GB122", TRAINING, "fox", {"train": 1024, "tests": "1024", "model": "causal: true"}),
    ("GB123", TRAINING, "rope", {"training": "steps: 1e6", "model": "width: 512"}),
    ("GB131", COST, "fox", {"causal": "false"}),
    ("GB131", TRAINING, "rope, layers(xpos)", {}),
    ("GB132", COST, "dynamic_ntk", {"metrics": "forward_ms, decode_ms"}),
    ("GB132", COST, "randomized(rope)", {"metrics": "decode_ms"}),
]
SILENT = [
    ("GB101", COST, "sinusoidal + window", {}),  # a mask tells no position
    ("GB101", COST, "sinusoidal + log_length", {}),
    ("GB101", COST, "rope + alibi", {}),  # both are relative
    ("GB102", TRAINING, "sinusoidal, rope", LONG),
    ("GB102", TRAINING, "none", LONG),
    ("GB102", TRAINING, "sinusoidal", {}),
    ("GB102", TRAINING, "sinusoidal, interpolated(sinusoidal)", LONG),
    ("GB103", TRAINING, "learned", {"tests": "32, 64"}),
    ("GB104", TRAINING, "rope + clamp", LONG),
    ("GB104", TRAINING, "rope, clamp + fourier", LONG),
    ("GB104", TRAINING, "rope, clamp(window=100)", {"tests": "64, 101"}),
    ("GB104", TRAINING, "rope, interpolated(clamp)", LONG),
    ("GB105", TRAINING, "rope + window", LONG),  # the control
    ("GB105", TRAINING, "rope + window(tokens=128)", LONG),
    ("GB105", TRAINING, "layers(rope + window(tokens=8))", LONG),
    ("GB105", TRAINING, "t5(max_distance=32), rope", LONG),  # its buckets are made for it
    ("GB106", TRAINING, "alibi, rope", LONG),
    ("GB106", TRAINING, "alibi", {}),
    ("GB111", TRAINING, "t5(max_distance='half')", {}),
    ("GB111", TRAINING, "t5(max_distance=64)", {}),
    ("GB111", TRAINING, "t5", {"train": 128, "tests": "128"}),
    ("GB111", COST, "t5", {}),  # nothing is trained
    ("GB112", TRAINING, "rope", {"train": 8, "tests": "8"}),  # where one starts
    ("GB112", TRAINING, "rope(base=1e6)", {"train": 256, "tests": "256"}),
    ("GB112", TRAINING, '"rope(base=(100, 1e8))"', {}),
    ("GB112", TRAINING, "rope, sinusoidal(base=1e8)", {}),  # turns nothing
    ("GB112", COST, "rope(base=1e8)", {}),
    ("GB113", TRAINING, "rope + clamp(heads='half')", {}),
    ("GB113", TRAINING, "rope + clamp(heads='shared'), rope + clamp", {}),
    ("GB113", TRAINING, "rope + clamp(heads='shared')", {"model": "heads: 1"}),
    ("GB113", TRAINING, "rope + shaw(window=64)", {}),  # shared by default, as in its paper
    ("GB114", COST, "clamp", {}),
    ("GB115", TRAINING, "rope", {"training": "shortest: 16"}),
    ("GB116", COST, "rope", {"lengths": 4096, "heads": 1}),  # counts in float32
    ("GB121", COST, "rope + t5", {"lengths": 65536, "heads": 1, "batch": 16}),  # one for the whole batch
    ("GB121", COST, "rope + t5", {"lengths": 65536, "heads": 2, "backend": "auto"}),
    ("GB121", COST, "rope", {"lengths": 65536, "heads": 2}),  # no bias
    ("GB121", COST, "alibi", {"lengths": 10**6, "metrics": "decode_ms"}),  # one row
    ("GB122", COST, "fox", {"lengths": 1024, "heads": 8, "batch": 15}),
    ("GB122", COST, "fox", {"lengths": 4096, "heads": 8, "batch": 1}),
    ("GB122", COST, "fox", {"lengths": 1024, "heads": 8, "batch": 16, "backend": "auto"}),
    ("GB122", COST, "alibi", {"lengths": 1024, "heads": 8, "batch": 16}),
    ("GB123", TRAINING, "rope", {"training": "steps: 1000"}),
    ("GB131", COST, "fox", {}),
    ("GB131", TRAINING, "rope, alibi", {}),
    ("GB132", COST, "dynamic_ntk", {"metrics": "forward_ms"}),
    ("GB132", COST, "rope, layers(rope)", {"metrics": "decode_ms"}),
]


@pytest.mark.parametrize(("code", "template", "encodings", "options"), FIRES)
def test_it_fires(check, code: str, template: str, encodings: str, options: dict[str, object]) -> None:
    assert code in [one.code for one in check(suite(template, encodings, options))]


@pytest.mark.parametrize(("code", "template", "encodings", "options"), SILENT)
def test_a_near_miss_is_silent(check, code: str, template: str, encodings: str, options: dict[str, object]) -> None:
    assert code not in [one.code for one in check(suite(template, encodings, options))]


@pytest.mark.parametrize(
    ("seeds", "metric", "fires"),
    [("0, 1, 2", "", True), ("0, 1, 2, 3, 4", "", False), ("0", ", metric: loss, step: 50", True)],
)
def test_a_claim_of_trainings_needs_five_seeds(check, seeds: str, metric: str, fires: bool) -> None:
    text = suite(TRAINING, "none, rope", {"seeds": seeds}, CLAIM % metric)
    assert ("GB141" in [one.code for one in check(text)]) is fires


def test_a_claim_of_costs_needs_no_seeds(check) -> None:
    assert check(suite(COST, "none, rope", {}, CLAIM % ", metric: peak_mib")) == []


@pytest.mark.parametrize(("expected", "fires"), [("longrope", False), ("rope", True)])
def test_a_skip_that_the_suite_expects_is_no_finding(check, expected: str, fires: bool) -> None:
    text = suite(COST, "rope, longrope", {"metrics": "decode_ms"}, SKIP % expected)
    assert ("GB132" in [one.code for one in check(text)]) is fires


def test_a_dense_bias_is_counted_in_bytes(check) -> None:
    [one] = check(suite(COST, "rope + t5", {"lengths": 65536, "heads": 2}))
    assert 2 * 65536**2 * 4 / 2**30 == 32
    assert one.reason.endswith("2 heads x 65536 x 65536 float32 numbers, 32 GiB, and the device has 16.")


def test_an_entry_of_all_lines_is_placed_at_its_own_encodings(check) -> None:
    text = suite(TRAINING, "rope, t5", {}) + "    encodings: [t5]\n"
    [one] = check(text)
    assert text.splitlines()[one.place.line - 1] == "    encodings: [t5]"
