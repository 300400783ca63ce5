"""The Pareto front as a figure."""

import pytest

from grape_bench.registry import Registry
from grape_bench.sections.ranking import ranking
from grape_bench.table import Figure
from grape_bench.view import View


@pytest.fixture
def make_figures(make_fabricated):
    def make(*, seeds, baseline="sinusoidal", only=None):
        made = make_fabricated(seeds=tuple(range(seeds)))
        suite = made.suite.model_copy(update={"baseline": baseline})
        kept = [one for one in made.cells if only in (None, one.kind)]
        section = ranking(View.of(suite, kept, made.records, Registry("metrics")))
        return {one.id: one for one in section.pieces if isinstance(one, Figure)}

    return make


def test_a_panel_for_each_cost_has_a_dot_for_each_offer(make_figures):
    figure = make_figures(seeds=8)["task-1-front"]
    time, memory = figure.panels
    assert time.title == "train step, of the model at 128 tokens"
    assert memory.title == "peak memory, of the model at 128 tokens"
    dots = {one.label: one for one in time.dots}
    assert set(dots) == {"sinusoidal", "t5", "rope", "rope + clamp"}  # none did not learn, alibi was not timed
    assert dots["sinusoidal"].x.mid == 1
    assert dots["t5"].x.low < 1.22 / 1.01 < dots["t5"].x.high
    assert dots["t5"].y.known


def test_a_ring_is_who_the_table_calls_beaten(make_figures):
    figure = make_figures(seeds=8)["task-1-front"]
    assert [one.label for one in figure.panels[0].dots if one.beaten] == ["t5"]
    assert "over that of sinusoidal" in figure.x_label


def test_few_seeds_beat_nobody(make_figures):
    assert not [one for panel in make_figures(seeds=4)["task-1-front"].panels for one in panel.dots if one.beaten]


def test_without_a_baseline_costs_have_units(make_figures):
    panels = make_figures(seeds=5, baseline=None)["task-1-front"].panels
    assert [one.title.partition(",")[2] for one in panels] == [
        " ms, of the model at 128 tokens",
        " MiB, of the model at 128 tokens",
    ]


def test_without_costs_there_is_no_front(make_figures):
    assert make_figures(seeds=5, only="accuracy") == {}
