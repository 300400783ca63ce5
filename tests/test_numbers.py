"""Numbers of the written reports against the raw records, computed by another road."""

import html
import re
import statistics
import xml.etree.ElementTree as ET
from decimal import Decimal

import pytest
from scipy import stats

from grape_bench.registry import Registry
from grape_bench.report import build, save

_NUMBER = re.compile(r"[−+-]?[\d,]*\.?\d+")


def _of_page(text):
    """Captions and rows of the tables that have a caption; an entry is (text, note)."""
    found = [
        ET.fromstring(one.replace("&nbsp;", " ")) for one in re.findall(r"<table><caption.*?</table>", text, re.DOTALL)
    ]
    return [("".join(one.find("caption").itertext()), [_entries(row) for row in one.iter("tr")]) for one in found]


def _entries(row):
    """Texts, be they in a link or not, and notes."""
    notes = [entry.findtext("small", "") for entry in row]
    return [("".join(entry.itertext()).removesuffix(note), note) for entry, note in zip(row, notes, strict=True)]


def _of_markdown(text):
    tables = re.findall(r"^\*\*(.+)\*\*\n\n((?:\|.*\n)+)", text, re.MULTILINE)
    return [(_plain(caption), [_cells(line) for line in _lines(body)]) for caption, body in tables]


def _lines(body):
    return [line for line in body.splitlines() if not re.fullmatch(r"[|:-]+", line)]


def _cells(line):
    cells = [[_plain(part) for part in cell.strip().split("<br>")] for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    if cells[0][0].startswith("**"):  # a heading
        return [(cells[0][0].strip("*"), "")]
    return [(cell[0], cell[1] if len(cell) > 1 else "") for cell in cells]


def _plain(text):
    return html.unescape(re.sub(r"\\(?=[^\w\s])", "", text))


@pytest.fixture(scope="module")
def made(make_fabricated):
    return make_fabricated(seeds=tuple(range(5)))


@pytest.fixture(scope="module")
def files(made, tmp_path_factory):
    report = build(made.suite, made.cells, made.records, Registry("metrics"))
    written = save(report, tmp_path_factory.mktemp("reports"))
    return {path.suffix: path.read_text(encoding="utf-8") for path in written[-2:]}


@pytest.fixture(scope="module", params=[".html", ".md"])
def tables(request, files):
    """Rows by caption and setting: {(caption, setting, name): {column: (text, note)}}."""
    found = {}
    for caption, (head, *rows) in (_of_page if request.param == ".html" else _of_markdown)(files[request.param]):
        setting = ""
        for row in rows:
            if len(row) == 1:
                setting = row[0][0]
            else:
                columns = [text for text, _ in head[1:]]
                found.setdefault((caption, setting, row[0][0]), dict(zip(columns, row[1:], strict=True)))
    return found


def _assert_printed(text, exact):
    """The first number in the text is the exact one, rounded where it ends; of whole numbers three digits count."""
    shown = _NUMBER.search(text)[0].replace(",", "").replace("−", "-")
    step = Decimal(1).scaleb(Decimal(shown).as_tuple().exponent)
    if "." not in shown:
        step = Decimal(10) ** max(len(shown) - 3, 0)
    assert abs(Decimal(shown) - Decimal(exact)) <= step / 2, f"{text} is not {exact}"


def _settings(cell):
    backend = f"{cell.dtype}, {cell.heads} heads of {cell.head_dim}, batch {cell.batch}, {cell.backend}"
    return backend + (f", {cell.layers} layers" if cell.scope == "model" else "")


def _costs(made, metric, scope):
    """Readings of the members of one metric, by cell."""
    found = [one for one in made.records if one.cell.kind == "cost" and one.role == "member" and one.status == "ok"]
    return {one.cell: one.reading for one in found if (one.cell.metric, one.cell.scope) == (metric, scope)}


def test_both_files_hold_the_same_tables(files):
    page, markdown = _of_page(files[".html"]), _of_markdown(files[".md"])
    assert len(page) == files[".html"].count("<caption") > 10
    assert page == markdown


@pytest.mark.parametrize("metric", ["forward_ms", "forward_backward_ms", "decode_ms"])
def test_times_are_medians_of_the_samples_and_ratios_those_of_the_rounds(made, tables, metric):
    name = metric.removesuffix("_ms").replace("_", " ").capitalize()
    readings = _costs(made, metric, "attention")
    assert len(readings) > 60
    for cell, reading in readings.items():
        text, note = tables[f"{name} by length in tokens: ratio to none, and ms", _settings(cell), cell.encoding][
            str(cell.length)
        ]
        _assert_printed(note.split(", ")[-1], statistics.median(reading.samples_ms))
        base = readings[cell.model_copy(update={"encoding": "none"})]
        ratios = [one / other for one, other in zip(reading.samples_ms, base.samples_ms, strict=True)]
        ordered = sorted(ratios)
        _assert_printed(text, (ordered[19] * ordered[20]) ** 0.5)  # the middle of forty, of logarithms


def test_peaks_are_those_of_the_records(made, tables):
    readings = _costs(made, "peak_mib", "attention")
    for cell, reading in readings.items():
        text, note = tables["Peak memory by length in tokens: ratio to none, and MiB", _settings(cell), cell.encoding][
            str(cell.length)
        ]
        _assert_printed(note, reading.peak_mib)
        _assert_printed(text, reading.peak_mib / readings[cell.model_copy(update={"encoding": "none"})].peak_mib)


def test_tokens_per_second_are_those_of_the_median_step(made, tables):
    caption = "Tokens per second in training, by length in tokens; from the median of train_step_ms; more is better"
    for cell, reading in _costs(made, "train_step_ms", "model").items():
        text, _ = tables[caption, _settings(cell), cell.encoding][str(cell.length)]
        _assert_printed(text, 1000 * cell.batch * cell.length / statistics.median(reading.samples_ms))


def test_accuracies_are_means_of_right_answers_with_their_t_interval(made, tables):
    caption = "Accuracy in recall, the headline group, by test length in tokens"
    trained = [one for one in made.records if one.cell.kind == "accuracy" and one.cell.task == "registers"]
    for encoding in made.suite.encodings:
        scores = {}
        for record in trained:
            if record.cell.encoding == encoding:
                for one in record.reading.scores:
                    if one.group == "recall":
                        scores.setdefault(one.length, []).append(one.correct / one.total)
        for length, found in scores.items():
            text, _ = tables[caption, "", encoding][f"{length} (trained)" if length == 64 else f"{length}"]
            half = stats.t.ppf(0.975, len(found) - 1) * statistics.stdev(found) / len(found) ** 0.5
            _assert_printed(text, statistics.fmean(found))
            _assert_printed(text.split("±")[1], half)
