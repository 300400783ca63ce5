"""The section on ranks: groups where seeds suffice, and what stands in their place where they do not."""

import pytest

from grape_bench.registry import Registry
from grape_bench.sections.ranking import ranking
from grape_bench.suite import expand, parse
from grape_bench.table import Heading
from grape_bench.view import View

REGIMES = """title: t
encodings: [rope]
seeds: [0]
accuracy:
  - {task: registers, train_length: 64, test_lengths: [64, 128]}
  - {task: registers(extend=64), train_length: 64, test_lengths: [64, 128]}
"""


@pytest.fixture
def make_tables(make_fabricated):
    def make(*, seeds, baseline="sinusoidal"):
        made = make_fabricated(seeds=tuple(range(seeds)))
        suite = made.suite.model_copy(update={"baseline": baseline})
        section = ranking(View.of(suite, made.cells, made.records, Registry("metrics")))
        return {one.id: one for one in section.pieces if hasattr(one, "columns")}

    return make


def _column(table, title):
    index = table.columns.index(title)
    return {row[0].text: row[index] for row in table.rows}


def test_a_suite_without_accuracy_has_no_ranks(fabricated):
    cost = [one for one in fabricated.cells if one.kind == "cost"]
    assert ranking(View.of(fabricated.suite, cost, fabricated.records, Registry("metrics"))) is None


def test_two_regimes_of_a_task_have_two_headings(make_record):
    suite = parse(REGIMES, "t.yaml")
    cells = expand(suite)
    section = ranking(View.of(suite, cells, [make_record(one) for one in cells], Registry("metrics")))
    assert [one.text for one in section.pieces if isinstance(one, Heading)] == [
        "Ranking in registers, trained at 64 tokens",
        "Ranking in registers(extend=64), trained at 64 tokens",
    ]


def test_encodings_stand_by_area_with_groups_and_ranges(make_tables):
    table = make_tables(seeds=8)["task-1-ranking"]
    assert [row[0].text for row in table.rows][-1] == "none"
    areas = _column(table, "area up to 512")
    assert list(areas)[:3] == ["alibi", "rope + clamp", "rope"]
    assert areas["alibi"].text.startswith(".7")
    assert " ± ." in areas["alibi"].text
    ranks = [row[2] for row in table.rows[:5]]
    assert all(one.text.startswith("group ") and one.note.startswith("rank ") for one in ranks)
    assert any(" to " in one.note for one in ranks)


def test_gaps_to_the_baseline_have_one_of_four_words(make_tables):
    table = make_tables(seeds=8)["task-1-ranking"]
    gaps = _column(table, "area up to 512 less that of sinusoidal")
    assert gaps["sinusoidal"].text == "0"
    assert (gaps["rope"].text[0], gaps["rope"].tone) == ("▲", "better")
    assert gaps["t5"].tone in ("worse", "same", "unclear")
    assert gaps["none"].text == "–"


def test_a_baseline_that_did_not_learn_is_no_reference(make_tables):
    table = make_tables(seeds=8, baseline="none")["task-1-ranking"]
    assert not [one for one in table.columns if "none" in one]
    assert _column(table, "Pareto")["t5"].text == "beaten"


def test_the_front_is_of_those_whose_costs_are_known(make_tables):
    front = _column(make_tables(seeds=8)["task-1-ranking"], "Pareto")
    assert front["alibi"].text == "–"  # its training step was never measured
    assert front["rope + clamp"].text == "on the front"
    assert (front["t5"].text, front["t5"].note) == ("beaten", "by rope")


def test_who_never_learned_has_no_rank_and_no_score(make_tables):
    table = make_tables(seeds=8)["task-1-ranking"]
    assert [entry.text for entry in table.rows[-1]][:3] == ["none", "did not learn", "–"]


def test_few_seeds_are_underpowered_and_say_what_they_would_show(make_tables):
    tables = make_tables(seeds=4)
    entries = _column(tables["task-1-ranking"], "its rank")
    assert {one.text for name, one in entries.items() if name != "none"} == {"underpowered"}
    assert entries["rope"].note.startswith("4 of 5 seeds, would show a gap of .")
    assert not {"Pareto", "area up to 512 less that of sinusoidal"} & {*tables["task-1-ranking"].columns}


def test_normalised_scores_are_of_those_that_learned(make_tables):
    table = make_tables(seeds=8)["task-1-extrapolation"]
    assert table.columns == ("encoding", "64 (trained)", "128", "256", "512")
    assert "none" not in [row[0].text for row in table.rows]
