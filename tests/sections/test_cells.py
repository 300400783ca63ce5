"""What unfolds below a row: every cell with its status, environment and samples."""

import pytest

from grape_bench.registry import Registry
from grape_bench.sections import cells
from grape_bench.sections.costs import costs
from grape_bench.sections.learning import learning
from grape_bench.table import Table
from grape_bench.view import View


@pytest.fixture
def view(fabricated):
    return View.of(fabricated.suite, fabricated.cells, fabricated.records, Registry("metrics"))


def _behind(section, name, encoding):
    table = next(one for one in section.pieces if isinstance(one, Table) and one.id == name)
    return next(row[0].behind for row in table.rows if row[0].text == encoding and row[0].behind)


def _rows(table):
    return [row for row in table.rows if len(row) > 1]


def test_every_row_of_costs_and_accuracy_rests_on_its_cells(view):
    tables = [one for section in (costs(view), learning(view)) for one in section.pieces if isinstance(one, Table)]
    rows = [row for table in tables for row in table.rows if len(row) > 1 and row[0].tone != "muted"]
    assert all(row[0].behind for row in rows)
    ids = [row[0].behind.id for row in rows]
    assert len(set(ids)) == len(ids)
    named = {entry.note for row in rows for entry in (one[0] for one in _rows(row[0].behind))}
    assert named == {f"cell {outcome.cell.id}" for outcome in view.outcomes()}


def test_samples_are_those_of_the_record(view, fabricated):
    found = _behind(costs(view), "bench-1-attention-forward-ms-table", "rope")
    (row, *_) = _rows(found)
    cell = next(one for one in fabricated.cells if f"cell {one.id}" == row[0].note)
    record = next(one for one in fabricated.records if one.cell == cell)
    assert [float(one) for one in row[-1].text.split()] == pytest.approx(record.reading.samples_ms, rel=5e-4)
    assert row[-1].note == "ms, 40 rounds of 4 calls by process_time on 1 thread"
    assert (row[1].text, row[2].text) == ("ok", "2024-01-01 00:00")
    assert found.rows[0][0].text.startswith("fabricated-cpu-2-cores: Fabricated CPU at 2.0 GHz, 2 cores, torch 2.99.0")


def test_a_cell_without_figure_says_why(view):
    failed = _rows(_behind(costs(view), "bench-1-attention-forward-backward-ms-table", "rope + clamp"))[-1]
    assert [one.text for one in failed] == ["1024", "failed", "2024-01-01 00:00", "16 GiB asked for, 2 GiB free"]
    assert failed[1].note == "oom"
    missing = _behind(costs(view), "bench-1-model-train-step-ms-table", "alibi")
    assert missing.rows[0][0].text == "not measured"
    assert [one.text for one in _rows(missing)[0]][1:] == ["missing", "–", "never tried"]


def test_trainings_give_their_right_answers(view, fabricated):
    rows = _rows(_behind(learning(view), "task-2-group-1", "rope"))
    assert [row[1].text for row in rows] == ["ok", "did not learn"]
    record = next(one for one in fabricated.records if f"cell {one.cell.id}" == rows[0][0].note)
    scores = [one for one in record.reading.scores if one.group == "order"]
    assert [one.text for one in rows[0][3:6]] == [f"{one.correct} of {one.total}" for one in scores]
    alibi = _rows(_behind(learning(view), "task-2-group-1", "alibi"))
    assert (alibi[1][1].text, alibi[1][1].note, alibi[1][2].note) == ("failed", "nan", "the loss was nan at step 120")


def test_where_there_is_too_much_a_cell_has_quartiles(fabricated, monkeypatch):
    again = [one.model_copy(update={"block_run": "block-2"}) for one in fabricated.records]
    records = [*fabricated.records, *again]
    view = View.of(fabricated.suite, fabricated.cells, records, Registry("metrics"))
    assert len(_rows(_behind(costs(view), "bench-1-attention-forward-ms-table", "rope"))) == 6
    monkeypatch.setattr(cells, "MOST", 10_000)
    rows = _rows(_behind(costs(view), "bench-1-attention-forward-ms-table", "rope"))
    assert len(rows) == 3
    assert len(rows[0][-1].text.split()) == 5
    assert rows[0][-1].note == "ms: least, quartiles and greatest of 80 samples in 2 processes"
