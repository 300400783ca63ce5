"""From records to sections: what stands where, and that nothing is hidden or made up."""

import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from grape_bench.cell import AccuracyCell, CostCell
from grape_bench.registry import Registry
from grape_bench.report import build, save, write
from grape_bench.sections.wording import quantity
from grape_bench.store import Store
from grape_bench.suite import expand, parse
from grape_bench.table import Facts, Figure, Prose, Tally


@pytest.fixture(scope="session")
def metrics():
    return Registry("metrics")


@pytest.fixture
def make_report(fabricated, metrics):
    def make(*, records=None, cells=None, **suite):
        changed = fabricated.suite.model_copy(update=suite)
        found = fabricated.records if records is None else records
        return build(changed, fabricated.cells if cells is None else cells, found, metrics)

    return make


def _table(report, name):
    return next(table for table in report.tables() if table.id == name)


def _section(report, name):
    return next(section for section in report.sections if section.id == name)


def _rows(table):
    return {row[0].text: row[1:] for row in table.rows if len(row) > 1}


def test_sections_stand_in_order(make_report):
    assert [section.id for section in make_report().sections] == [
        "ranking",
        "summary",
        "article",
        "accuracy",
        "cost",
        "throughput",
        "ledger",
        "resolution",
        "environment",
        "history",
    ]


def test_ids_are_unique_and_columns_are_filled(make_report):
    report = make_report()
    tables, figures = list(report.tables()), list(report.figures())
    ids = [piece.id for piece in (*tables, *figures, *report.sections)]
    assert len(ids) == len(set(ids))
    assert all(len(row) in (1, len(table.columns)) for table in tables for row in table.rows)
    assert len(figures) == 2 * 2 + 4 + 2  # fronts and curves of tasks, metrics of attention, metrics of the model


def test_the_summary_counts_every_cell_once(make_report, fabricated):
    summary = _section(make_report(), "summary")
    (tally,) = (piece for piece in summary.pieces if isinstance(piece, Tally))
    counts = {word: count for _, word, count in tally.counts}
    assert counts == {"ok": 321, "skipped": 6, "failed": 5, "missing": 4, "did not learn": 5}
    assert sum(counts.values()) - counts["did not learn"] == len(fabricated.cells)
    facts = dict(next(piece for piece in summary.pieces if isinstance(piece, Facts)).items)
    assert "commit 0123456789 (dirty)" in facts["machine"]
    assert "torch 2.99.0" in facts["machine"]


def test_the_articles_table_has_claims_beside_figures(make_report):
    table = _table(make_report(), "article-table")
    assert table.columns == ("encoding", "A", "C at 2×", "relative training time", "memory added", "did not learn")
    rows = _rows(table)
    assert list(rows) == ["none", "sinusoidal", "t5", "rope", "alibi", "rope + clamp"]
    assert rows["sinusoidal"][0].note == "article .812"
    assert rows["rope + clamp"][1].note == "article .672"
    assert "article" not in rows["alibi"][0].note
    assert (rows["sinusoidal"][2].text, rows["sinusoidal"][2].note) == ("1", "article 1.00")
    assert rows["alibi"][2].text == "missing"
    assert rows["none"][3].text == "0 MiB"
    assert rows["rope"][4].text == "1 of 4 trainings"


def test_without_sinusoidal_time_is_relative_to_the_baseline_and_says_so(make_report, fabricated):
    report = make_report(
        encodings=("none", "rope"), cells=[cell for cell in fabricated.cells if cell.encoding in ("none", "rope")]
    )
    facts = next(piece for piece in _section(report, "article").pieces if isinstance(piece, Facts))
    assert "in place of sinusoidal" in dict(facts.items)["relative training time"]
    assert _rows(_table(report, "article-table"))["none"][1:3][1].text == "1"


def test_four_kinds_of_absence_look_different(make_report):
    report = make_report()
    order = _rows(_table(report, "task-2-group-1"))
    decode = _rows(_table(report, "bench-1-attention-decode-ms-table"))
    backward = _rows(_table(report, "bench-1-attention-forward-backward-ms-table"))
    step = _rows(_table(report, "bench-1-model-train-step-ms-table"))
    assert (decode["t5"][0].text, decode["t5"][0].tone) == ("skipped", "skipped")
    assert (backward["rope + clamp"][2].text, backward["rope + clamp"][2].note) == ("failed", "oom")
    assert (step["alibi"][0].text, step["alibi"][0].tone) == ("missing", "missing")
    assert (order["none"][0].tone, order["none"][3].text) == ("unlearned", "2 of 2")
    assert order["none"][0].text.endswith("†")
    assert order["rope"][0].note == "1 seed"
    assert order["alibi"][0].note == "1 seed, 1 failed"


def test_accuracy_tables_end_with_the_blind_ceiling_and_chance(make_report):
    table = _table(make_report(), "task-1-group-1")
    assert table.columns[1] == "64 (trained)"
    assert [row[0].text for row in table.rows[-2:]] == ["blind ceiling", "chance"]
    assert table.rows[-2][1].text == ".333"


def test_cost_entries_are_ratios_with_intervals_and_absolute_figures(make_report):
    table = _table(make_report(), "bench-1-attention-forward-ms-table")
    rows = _rows(table)
    assert rows["none"][0].text == "1"
    assert rows["none"][0].note.endswith(" ms")
    ratio = rows["rope + clamp"][0]
    assert ratio.text.startswith("▲ 1.3")
    assert ratio.note.startswith("[1.")
    assert ratio.note.endswith(" ms")
    assert "none against itself" in rows
    assert [len(row) for row in table.rows].count(1) == 4  # one heading a setting


def test_a_suite_without_baseline_has_absolute_figures_alone(make_report):
    report = make_report(baseline=None)
    entries = [entry for row in _rows(_table(report, "bench-1-attention-forward-ms-table")).values() for entry in row]
    assert all(entry.text.endswith(" ms") for entry in entries)


def test_times_under_contention_are_marked(make_report):
    report = make_report()
    assert _rows(_table(report, "bench-1-model-train-step-ms-table"))["none"][0].note.endswith("°")
    assert not _rows(_table(report, "bench-1-attention-forward-ms-table"))["none"][0].note.endswith("°")
    assert _table(report, "bench-1-protocol").rows[4][-1].text == "10 of 10 cells contended"


def test_tokens_per_second_follow_from_the_training_step(make_report, fabricated):
    cell = next(one for one in fabricated.cells if isinstance(one, CostCell) and one.metric == "train_step_ms")
    samples = sorted(next(one for one in fabricated.records if one.cell == cell).reading.samples_ms)
    median_ms = (samples[19] + samples[20]) / 2
    table = _table(make_report(), "bench-1-tokens-per-second-table")
    assert _rows(table)["none"][0].text == quantity(16 * 64 / (median_ms / 1000))


def test_the_ledger_names_every_cell_without_a_figure(make_report):
    rows = _table(make_report(), "ledger-table").rows
    said = [" ".join(entry.text + " " + entry.note for entry in row) for row in rows]
    assert any("t5: decode_ms" in one and "skipped" in one and "in this tale" in one for one in said)
    assert any("rope + clamp: forward_backward_ms" in one and "oom" in one and "1024 tokens" in one for one in said)
    assert any("alibi: train_step_ms" in one and "never tried" in one and "64, 128 tokens" in one for one in said)
    assert any("rope: short_text" in one and "did not learn" in one and "seed 1" in one for one in said)


def test_machines_are_never_in_one_table(make_report, fabricated, environment):
    other = environment.model_copy(update={"machine": "another-gpu", "device": "Another GPU"})
    moved = [one.model_copy(update={"environment": other}) for one in fabricated.records]
    report = make_report(records=[*fabricated.records, *moved])
    headings = [table.id for table in report.tables() if table.id.endswith("forward-ms-table")]
    assert headings == ["bench-1-attention-forward-ms-table", "bench-2-attention-forward-ms-table"]
    assert len(_table(report, "environment-table").columns) == 3


def test_an_older_environment_is_left_out_by_name(make_report, fabricated, environment):
    newer = environment.model_copy(update={"torch": "3.0"})
    cost = [one for one in fabricated.records if one.cell.kind == "cost"]
    again = cost[0].model_copy(update={"environment": newer, "at": "2025-01-01T00:00:00Z"})
    report = make_report(records=[*fabricated.records, again])
    prose = [piece.text for piece in report.sections[-2].pieces if isinstance(piece, Prose)]
    assert any("torch differs: 2.99.0 and 3.0" in text for text in prose)


def test_a_suite_without_records_reports_that_all_is_missing(make_report, fabricated):
    report = make_report(records=[])
    assert not list(report.figures())
    assert {entry.text for row in _rows(_table(report, "task-1-group-1")).values() for entry in row[:1]} == {
        "missing",
        "–",
    }
    assert {row[1].text for row in _table(report, "ledger-table").rows} == {"missing"}


def test_a_suite_of_accuracy_alone_has_no_cost(make_report, fabricated):
    report = make_report(cells=[one for one in fabricated.cells if isinstance(one, AccuracyCell)])
    assert "cost" not in [section.id for section in report.sections]


def test_records_of_other_cells_are_passed_over(make_report, fabricated):
    report = make_report(cells=fabricated.cells[:6])
    assert len(list(report.figures())) == 1


def test_figures_show_one_setting_a_number_format(make_report):
    figure = next(one for one in make_report().figures() if one.id == "bench-1-attention-forward-ms-figure")
    assert [panel.title.split(", ")[:2] for panel in figure.panels] == [
        ["float32", "8 heads of 64"],
        ["bfloat16", "8 heads of 64"],
    ]
    assert isinstance(figure, Figure)
    assert len({curve.slot for panel in figure.panels for curve in panel.curves}) == 6


def test_files_are_written_page_last_and_byte_for_byte(make_report, tmp_path):
    first, again = (save(make_report(), tmp_path / name) for name in ("first", "again"))
    assert first[-1] == tmp_path / "first" / "fabricated.html"
    names = [path.relative_to(tmp_path / "first") for path in first]
    assert Path("fabricated.md") in names
    assert len([name for name in names if name.parts[0] == "fabricated" and name.suffix == ".svg"]) == 10
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]


def test_papers_get_figures_and_tables_in_their_forms(make_report, tmp_path):
    report = make_report(records=[])
    report = replace(report, sections=(_section(report, "accuracy"), _section(make_report(), "ranking")))
    names = {path.name for path in save(report, tmp_path, figures=("pdf", "png"), latex=True)}
    figures = {f"{one.id}.{form}" for one in report.figures() for form in ("svg", "pdf", "png")}
    assert names == {f"{one.id}.tex" for one in report.tables()} | figures | {"fabricated.md", "fabricated.html"}


def test_the_page_of_fifty_encodings_is_below_5_mb(make_fabricated, metrics, monkeypatch):
    monkeypatch.setattr("grape_bench.interval._RESAMPLES", 20)
    names = tuple(f"rope(base={1000 + number}) + alibi" for number in range(49))
    made = make_fabricated(encodings=("none", *names), seeds=tuple(range(5)))
    report = build(made.suite, made.cells, made.records, metrics)
    page = Registry("renderers")["html"].load()().render(report)
    assert 1_000_000 < len(page.encode()) < 5_000_000


def test_a_suite_is_written_from_its_store(make_record, environment, tmp_path):
    text = "title: Small\nencodings: [none, rope]\nbaseline: none\ncost:\n  - {lengths: [128], metrics: [forward_ms]}\n"
    suite = parse(text, "small.yaml")
    store = Store(tmp_path / "results")
    with store.writing(environment.machine, "small") as writer:
        writer.append(make_record(cell, suite="small") for cell in expand(suite))
    paths = write(suite, store, tmp_path / "reports")
    assert [path.name for path in paths if path.suffix != ".svg"] == ["small.md", "small.html"]
    assert "**2** ok" in (tmp_path / "reports" / "small.md").read_text(encoding="utf-8")


def test_a_report_imports_no_torch():
    code = "import sys, grape_bench.report, grape_bench.renderers.html, grape_bench.renderers.markdown\n"
    code += "sys.exit('torch' in sys.modules or 'matplotlib.pyplot' in sys.modules)"
    root = Path(find_spec("grape_bench").origin).parents[1]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0
