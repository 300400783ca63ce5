"""Which records speak for a cell, and which may be compared."""

import pytest

from grape_bench.cell import AccuracyCell, CostCell
from grape_bench.outcome import machines, of_one_text, outcomes

COST = CostCell(metric="forward_ms", encoding="rope", length=128)
TRAINING = AccuracyCell(task="registers", encoding="rope", seed=0, train_length=64, test_lengths=(64,))


def _only(cell, records):
    return outcomes([cell], records)[cell.id]


def test_a_cell_without_records_is_missing(make_record):
    other = make_record(CostCell(metric="forward_ms", encoding="none", length=128))
    assert _only(COST, [other]).standing == "missing"


@pytest.mark.parametrize(("status", "fault"), [("skipped", None), ("failed", "oom")])
def test_a_skip_and_a_failure_keep_their_reason(make_record, status, fault):
    found = _only(COST, [make_record(COST, status=status, fault=fault, message="because")])
    assert (found.standing, found.fault, found.message) == (status, fault or "", "because")


def test_the_latest_run_speaks_for_a_cell(make_record):
    old = make_record(COST, run="one", at="2024-01-01T00:00:00Z")
    new = make_record(COST, run="two", at="2024-01-02T00:00:00Z", status="failed", fault="gate", message="no")
    assert _only(COST, [new, old]).standing == "failed"


def test_within_a_run_one_success_is_enough(make_record):
    good = make_record(COST, at="2024-01-01T00:00:00Z")
    bad = make_record(COST, at="2024-01-01T01:00:00Z", status="failed", fault="killed", message="no")
    assert _only(COST, [good, bad]).records == (good,)


def test_processes_of_a_cost_cell_are_kept_and_replicates_of_a_training_are_not(make_record):
    processes = [make_record(COST, block_run=run) for run in ("a", "b", "c")]
    assert _only(COST, processes).records == tuple(processes)
    replicates = [make_record(TRAINING, block_run=run) for run in ("a", "b")]
    assert _only(TRAINING, replicates).records == (replicates[1],)


def test_a_control_is_no_measurement_of_its_cell(make_record):
    assert _only(COST, [make_record(COST, role="control")]).standing == "missing"


def test_a_machine_shows_its_newest_environment_and_names_what_changed(make_record, environment):
    newer = environment.model_copy(update={"torch": "3.0"})
    old = make_record(COST, at="2024-01-01T00:00:00Z")
    new = make_record(COST, at="2024-01-02T00:00:00Z", environment=newer)
    (found,) = machines([new, old])
    assert found.records == (new,)
    assert found.older == ("torch differs: 2.99.0 and 3.0",)


def test_machines_come_newest_first(make_record, environment):
    other = environment.model_copy(update={"machine": "another", "load": 3.0})
    records = [make_record(COST), make_record(COST, environment=other, at="2025-01-01T00:00:00Z")]
    assert [one.environment.machine for one in machines(records)] == ["another", environment.machine]


def _on(make_record, text, **changes):
    cell = TRAINING.model_copy(update=changes.pop("cell", {}))
    made = make_record(cell, **changes)
    return made.model_copy(update={"reading": made.reading.model_copy(update={"text_sha": text})})


def test_of_two_texts_the_newest_of_each_setting_counts(make_record):
    old = _on(make_record, "aa", at="2024-01-01T00:00:00Z")
    new = _on(make_record, "bb", at="2024-01-02T00:00:00Z", cell={"seed": 1})
    elsewhere = _on(make_record, "aa", at="2024-01-01T00:00:00Z", cell={"task": "text"})
    kept, left = of_one_text([old, elsewhere, new])
    assert {one.id for one in kept} == {new.id, elsewhere.id}
    assert left == ("1 trainings of the text aa, where the newest are of bb",)


def test_records_without_a_text_are_all_kept(make_record):
    records = [make_record(COST), make_record(TRAINING), make_record(TRAINING, status="failed", fault="nan")]
    kept, left = of_one_text(records)
    assert sorted(map(str, kept)) == sorted(map(str, records))
    assert left == ()
