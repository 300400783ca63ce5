"""Every renderer in the folder: what it keeps, and what it lets no record do."""

import base64
import hashlib
import html.parser
import re

import pytest

from grape_bench.registry import Registry
from grape_bench.renderers import Renderer
from grape_bench.renderers.markdown import escape
from grape_bench.table import Curve, Entry, Facts, Figure, Heading, Panel, Prose, Report, Section, Table, Tally

HOSTILE = '<script>alert("1")</script> & `code` | *star* [x](http://evil.example) \x1b[31m'
VOID = {"meta", "link", "br", "img", "hr", "wbr", "input"}


class _Page(html.parser.HTMLParser):
    """Checks that elements nest, and keeps tags, ids, addresses and text."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.ids, self.addresses, self.text = [], [], [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.open += [] if tag in VOID else [tag]
        for key, value in attributes:
            if key == "id":
                self.ids.append(value)
            if key in ("src", "href", "srcset", "action", "data", "poster", "xlink:href"):
                self.addresses.append(value)
            assert not key.startswith("on")

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture
def report():
    behind = Table("table-1-1", HOSTILE, ("length", HOSTILE), ((Entry("64"), Entry("0.5 0.6", HOSTILE)),))
    table = Table(
        "table-1",
        "A table",
        ("encoding", HOSTILE),
        (
            (Entry(HOSTILE),),
            (Entry("rope", behind=behind), Entry("1.05", HOSTILE, "slower")),
            (Entry("none"), Entry("failed", "oom", "failed")),
        ),
        foot="read it so",
    )
    empty = Table("table-2", "Without rows", ("encoding", "64"), ())
    curve = Curve(HOSTILE.replace("\x1b", ""), 0, (64.0, 128.0), (0.5, 0.6))
    figure = Figure("figure-1", "A figure", "length, tokens", "ms", (Panel("", (curve,)),))
    pieces = (
        Prose(HOSTILE),
        Heading("Below"),
        Facts((("machine", HOSTILE),)),
        Tally((("ok", "ok", 3),)),
        table,
        empty,
        figure,
    )
    return Report("suite", "A title", HOSTILE, (Section("first", "First", pieces), Section("second", "Second", ())))


@pytest.fixture(params=sorted(Registry("renderers")))
def renderer(request):
    return Registry("renderers")[request.param].load()()


def test_a_renderer_keeps_the_contract(renderer, report):
    assert isinstance(renderer, Renderer)
    assert re.fullmatch(r"\.[a-z]+", renderer.suffix)
    text = renderer.render(report)
    assert text.endswith("\n")
    assert text == renderer.render(report)


def test_all_titles_and_figures_are_there(renderer, report):
    text = renderer.render(report)
    for said in ("A title", "First", "Second", "A table", "A figure", "read it so", "Below", "1.05", "failed", "oom"):
        assert said in text


def test_no_string_of_a_record_becomes_markup(renderer, report):
    text = renderer.render(report)
    assert "<script>alert" not in text
    assert text.count("<script") == (renderer.suffix == ".html")  # its own
    assert "\x1b" not in text


def test_a_real_report_renders(renderer, fabricated):
    from grape_bench.report import build

    built = build(fabricated.suite, fabricated.cells, fabricated.records, Registry("metrics"))
    text = renderer.render(built)
    assert all(table.caption.split(":")[0] in text for table in built.tables())


def test_the_page_is_well_formed_and_needs_nothing_beside_it(report):
    page = _Page(Registry("renderers")["html"].load()().render(report))
    assert page.tags.count("table") == 3
    assert page.tags.count("caption") == 2
    assert page.tags.count("svg") == page.tags.count("figcaption") == page.tags.count("script") == 1
    assert page.addresses
    assert all(address.startswith("#") for address in page.addresses)
    assert {address.removeprefix("#") for address in page.addresses} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert HOSTILE.replace("\x1b", "\ufffd") in page.text


def test_the_first_entry_heads_its_row_and_a_lone_one_those_below(report):
    text = Registry("renderers")["html"].load()().render(report)
    assert '<tr><th scope="row">none</th><td class="failed">failed<small>' in text
    assert '<tbody>\n<tr class="setting"><th scope="rowgroup" colspan="2">' in text


def test_a_row_leads_to_what_it_rests_on(report):
    text = Registry("renderers")["html"].load()().render(report)
    assert '<th scope="row"><a class="unfold" href="#table-1-1">rope</a></th>' in text
    assert '<table id="table-1-1">' in text
    assert "0.5 0.6" not in Registry("renderers")["markdown"].load()().render(report)


def test_the_policy_of_the_page_allows_its_own_script_alone(report):
    text = Registry("renderers")["html"].load()().render(report)
    script = re.search(r"<script>(.*)</script>", text, re.DOTALL).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text).group(1)
    assert policy.startswith(f"default-src 'none'; script-src 'sha256-{digest}'; ")
    assert "http" not in policy


def test_rows_can_be_filtered_by_what_the_report_has(report):
    text = Registry("renderers")["html"].load()().render(report)
    assert re.findall(r'<option value="(\w+)">', text) == ["failed", "slower"]


def test_markdown_points_at_files_of_figures_and_keeps_its_columns(report):
    text = Registry("renderers")["markdown"].load()().render(report)
    assert "![A figure](suite/figure-1.svg)" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {3}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("rope + clamp", "rope + clamp"),
        ("forward_ms", "forward_ms"),
        ("a|b", r"a\|b"),
        ("__init__", r"\_\_init\_\_"),
        ("<b>", "&lt;b&gt;"),
        ("two\nlines", "two lines"),
        ("# no heading", r"\# no heading"),
        ("1. no list", r"1\. no list"),
    ],
)
def test_markdown_shows_text_as_it_is(text, shown):
    assert escape(text) == shown
