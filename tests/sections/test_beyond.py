"""The table of longer inputs: means, changes seed by seed, and controls."""

import math
import statistics

import pytest

from grape_bench.cell import AccuracyCell
from grape_bench.record import AccuracyReading, CurvePoint
from grape_bench.registry import Registry
from grape_bench.score import Score
from grape_bench.sections.learning import learning
from grape_bench.sections.ranking import ranking
from grape_bench.suite import Suite
from grape_bench.table import Figure, Prose, Table
from grape_bench.view import View

UNIGRAM, ASKED = 3.0, 1000
# Loss at 128 and 512 tokens, and by how much seeds differ there.
LOSSES = {"alibi": (1.5, 1.5), "sinusoidal": (1.6, 2.8), "none": (2.4, 2.4)}
SEEDS = range(5)
T_FOR_THREE = 3.9608  # t(1 - 0.05 / 6, 4): three changes in a row, five seeds


def _cell(encoding, seed, *, controls=True):
    return AccuracyCell(
        task="text", encoding=encoding, seed=seed, train_length=128, test_lengths=(128, 512), controls=controls
    )


def _score(length, loss, group="end"):
    level = {"blind": 0.3, "chance": 1 / 256, "blind_nats": UNIGRAM}
    return Score(length=length, group=group, correct=500, total=ASKED, nats=loss * ASKED, **level)


def _off(seed):
    return 0.01 * (seed - 2)


def _reading(cell, text="0a1b", controls=True):
    near, far = LOSSES[cell.encoding]
    own = near + _off(cell.seed)
    # At 512 the seeds scatter anew, so that a change is no difference of means alone.
    scores = (_score(128, own), _score(512, far - _off(cell.seed)), _score(512, 9.0, "0-31"))
    return AccuracyReading(
        headline="end",
        scores=scores,
        curve=(CurvePoint(step=1, loss=2.0, accuracy={"end": 0.5}),),
        lr=3e-3,
        data_sha=f"data of {cell.seed}",
        parameters=1,
        train_s=1.0,
        train_cpu_s=1.0,
        text_sha=text,
        windowed=(_score(512, own + 0.5),) if controls else (),
        truncated=(_score(512, own),) if controls else (),
    )


@pytest.fixture
def make_view(make_record):
    def made(controls=True, text="0a1b", others=()):
        suite = Suite.model_construct(name="text", title="Text", encodings=tuple(LOSSES), seeds=tuple(SEEDS))
        cells = [_cell(encoding, seed, controls=controls) for seed in SEEDS for encoding in LOSSES]
        records = [make_record(one, reading=_reading(one, text, controls)) for one in cells]
        return View.of(suite, cells, [*records, *others], Registry("metrics"))

    return made


def _table(section, part):
    return next(one for one in section.pieces if isinstance(one, Table) and part in one.id)


def _row(table, name):
    return next(row for row in table.rows if row[0].text == name)


def test_lengths_stand_beside_their_controls(make_view):
    table = _table(learning(make_view()), "beyond")
    assert table.columns == ("encoding", "128 (trained)", "512", "512, window", "512, cut")
    assert "Text 0a1b" in table.foot
    assert [row[0].text for row in table.rows] == list(LOSSES)


def test_a_change_is_taken_seed_by_seed_with_an_interval_that_holds_for_the_row(make_view):
    _, trained, longer, window, cut = _row(_table(learning(make_view()), "beyond"), "sinusoidal")
    assert trained.text == "1.600 ± .020"
    changes = [2.8 - 1.6 - 2 * _off(seed) for seed in SEEDS]
    half = T_FOR_THREE * statistics.stdev(changes) / math.sqrt(5)
    assert longer.text.endswith("2.800 ± .020")
    assert (longer.tone, longer.note) == ("worse", "worse, +1.200 ± " + f"{half:.3f}"[1:])
    assert (window.tone, window.note) == ("worse", "worse, +0.500 ± .000")
    assert (cut.tone, cut.note) == ("same", "same, +0.000 ± .000")


def test_less_loss_ranks_higher(make_view):
    table = _table(ranking(make_view()), "task-1-ranking")
    assert [row[0].text for row in table.rows] == ["alibi", "sinusoidal", "none"]
    scores = {row[0].text: row[1].text for row in table.rows}
    assert scores["alibi"].startswith(".500")  # half of a unigram's loss is saved
    assert scores["none"] == "did not learn"  # 1 - 2.4 / 3 is below 0.3


def test_learned_and_levels_are_those_of_a_loss(make_view):
    section = learning(make_view())
    table = _table(section, "group-1")
    assert "steps to 0.9" not in table.columns
    assert [entry.text for entry in _row(table, "unigram")[1:3]] == ["3.000", "3.000"]
    assert _row(table, "chance")[1].text == f"{math.log(256):.3f}"
    assert _row(table, "none")[-1].text == "5 of 5"
    assert _row(table, "alibi")[-1].text == "0 of 5"
    assert any("in nats a token" in one.text for one in section.pieces if isinstance(one, Prose))
    (figure,) = (one for one in section.pieces if isinstance(one, Figure))
    assert not figure.share
    assert "loss in nats a token in end" in figure.y_label


def test_a_loss_has_its_table_without_controls_and_an_accuracy_has_none(make_view, fabricated):
    assert _table(learning(make_view(controls=False)), "beyond").columns == ("encoding", "128 (trained)", "512")
    plain = learning(View.of(fabricated.suite, fabricated.cells, fabricated.records, Registry("metrics")))
    assert not [one for one in plain.pieces if isinstance(one, Table) and "beyond" in one.id]


def test_trainings_on_another_text_are_left_out_and_named(make_view, make_record):
    cell = _cell("alibi", 0)
    older = make_record(cell, reading=_reading(cell, "ffff"), at="2023-01-01T00:00:00Z")
    section = learning(make_view(others=[older]))
    said = [one.text for one in section.pieces if isinstance(one, Prose)]
    assert "Left out: 1 trainings of the text ffff, where the newest are of 0a1b." in said
    assert _row(_table(section, "beyond"), "alibi")[1].text == "1.500 ± .020"


def test_a_newer_text_speaks_alone(make_view, make_record):
    cell = _cell("alibi", 0)
    newer = make_record(cell, reading=_reading(cell, "ffff"), at="2025-01-01T00:00:00Z")
    table = _table(learning(make_view(others=[newer])), "beyond")
    assert "Text ffff" in table.foot
    assert _row(table, "alibi")[1].note == "1 seed, 4 missing"
    assert _row(table, "sinusoidal")[1].text == "missing"
