"""The section on claims: a verdict for each, and every pair with its records."""

import pytest

from grape_bench.registry import Registry
from grape_bench.renderers.html import PLUGIN as HTML
from grape_bench.renderers.markdown import PLUGIN as MARKDOWN
from grape_bench.sections.claims import claims
from grape_bench.suite_claim import Claim
from grape_bench.table import Report
from grape_bench.view import View


@pytest.fixture
def make_section(make_fabricated):
    def make(*found):
        made = make_fabricated(seeds=tuple(range(5)))
        suite = made.suite.model_copy(update={"claims": found})
        return claims(View.of(suite, made.cells, made.records, Registry("metrics")))

    return make


def _claim(**changes):
    made = {"says": "<b>RoPE</b> carries further.", "relation": "above", "encodings": ("rope",)}
    return Claim.model_construct(
        **made, **{"id": "C1", "against": ("sinusoidal",), "task": "registers", "at": "2x"} | changes
    )


def test_a_suite_that_claims_nothing_has_no_section(make_section):
    assert make_section() is None


def test_verdicts_come_first_and_their_pairs_after(make_section):
    section = make_section(_claim(), _claim(id="C5", task=None, at=None, metric="train_step_ms", margin=0.01))
    _, verdicts, evidence = section.pieces
    assert verdicts.caption.startswith("Verdicts: ")
    assert [row[0].text for row in verdicts.rows] == ["C1", "C5 on fabricated-cpu-2-cores"]
    assert (verdicts.rows[0][1].text, verdicts.rows[0][1].tone) == ("supported", "ok")
    assert [len(row) for row in evidence.rows] == [1, 5, 1, 5, 5]
    assert len(evidence.rows[1][4].text.split()) == 10  # five seeds of two encodings


def test_a_sentence_is_shown_and_never_run(make_section):
    report = Report("s", "t", "", (make_section(_claim()),))
    for renderer in (HTML(), MARKDOWN()):
        text = renderer.render(report)
        assert "&lt;b&gt;RoPE&lt;/b&gt;" in text
        assert "<b>RoPE" not in text
