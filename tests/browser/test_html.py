"""The page in a browser without a network: what a reader can do with it, by hand and by keyboard."""

import os
import re
import shutil
from contextlib import contextmanager

import pytest

from grape_bench.registry import Registry
from grape_bench.report import build, save

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)
HOSTILE = "<script>document.title = 'owned'</script>"
COSTS = "bench-1-attention-forward-ms-table"
BACKWARD = "bench-1-attention-forward-backward-ms-table"
LEARNED = "task-1-group-1"
PAPER = {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 24, 29)"}

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed"),
]


@pytest.fixture(scope="module")
def browser():
    """The system's Chromium; playwright brings none of its own."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))


@pytest.fixture(scope="module")
def written(make_fabricated, tmp_path_factory):
    """A report in which one encoding bears a hostile name, and its page."""
    made = make_fabricated()
    changed = [one.model_copy(update={"message": HOSTILE}) if one.status == "failed" else one for one in made.records]
    cells = [_renamed(cell) for cell in made.cells]
    records = [one.model_copy(update={"cell": _renamed(one.cell)}) for one in changed]
    encodings = tuple(HOSTILE if one == "rope" else one for one in made.suite.encodings)
    suite = made.suite.model_copy(update={"encodings": encodings})
    report = build(suite, cells, records, Registry("metrics"))
    return report, records, save(report, tmp_path_factory.mktemp("reports"))[-1]


def _renamed(cell):
    return cell.model_copy(update={"encoding": HOSTILE}) if cell.encoding == "rope" else cell


@contextmanager
def _open(browser, path, **options):
    """The page in a fresh context; whatever it says on the console, or asks of a network, is an error."""
    context = browser.new_context(**options)
    page = context.new_page()
    page.set_default_timeout(10_000)
    faults, asked = [], []
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    yield page
    context.close()
    assert faults == []
    assert asked == [path.as_uri()]


@pytest.fixture
def page(browser, written):
    with _open(browser, written[-1]) as page:
        yield page


def _column(page, table, index):
    """The texts of a column's visible entries, without notes, setting by setting."""
    return page.evaluate(
        """([table, index]) => [...document.querySelectorAll(`#${table} > .scroll > table > tbody`)].map((body) =>
            [...body.rows].filter((row) => !row.hidden && !/setting|unfolded/.test(row.className))
                .map((row) => row.cells[index].firstChild?.textContent ?? ""))""",
        [table, index],
    )


def _figure(text):
    found = re.search(r"\d*\.?\d+", text)
    return float(found[0]) if found else None


def _paper(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_all_tables_and_figures_are_shown(page, written):
    report, *_ = written
    assert page.locator("main .table > .scroll > table").count() == len(list(report.tables()))
    assert page.locator("main svg").count() == len(list(report.figures()))
    for piece in (*report.tables(), *report.figures(), *report.sections):
        assert page.locator(f"[id='{piece.id}']").is_visible()


def test_a_hostile_name_is_inert(page, written):
    report, *_ = written
    assert page.title() == report.title
    assert page.evaluate("document.scripts.length") == 1
    assert page.locator(f"#{COSTS}").get_by_role("button", name=HOSTILE).first.is_visible()


def test_no_script_but_its_own_is_run(browser, written):
    from playwright.sync_api import Error

    page = browser.new_page()
    page.goto(written[-1].as_uri())
    with pytest.raises(Error, match="Content Security Policy"):
        page.add_script_tag(content="document.title = 'owned'")
    assert page.title() != "owned"
    page.close()


def test_columns_sort_within_their_settings_by_what_is_printed(page):
    before = _column(page, COSTS, 1)
    header = page.locator(f"#{COSTS} thead th").nth(1)
    for direction in ("ascending", "descending"):
        header.get_by_role("button").click()
        assert header.get_attribute("aria-sort") == direction
        for was, names, texts in zip(before, _column(page, COSTS, 0), _column(page, COSTS, 1), strict=True):
            assert sorted(texts) == sorted(was)
            assert names[-1] == "none against itself"  # a reference row keeps to the end
            figures = [_figure(text) for text in texts[:-1]]
            assert figures == sorted(figures, reverse=direction == "descending")
    header.get_by_role("button").click()
    assert header.get_attribute("aria-sort") is None
    assert _column(page, COSTS, 1) == before


def test_cells_without_a_figure_come_last_in_either_direction(page):
    button = page.locator(f"#{BACKWARD} thead th").nth(3).get_by_role("button")
    for _ in range(2):
        button.click()
        assert all(texts[-2] == "failed" for texts in _column(page, BACKWARD, 3))


def test_words_sort_as_words_and_by_keyboard(page):
    header = page.locator(f"#{LEARNED} thead th").first
    header.get_by_role("button").focus()
    page.keyboard.press("Enter")
    (names,) = _column(page, LEARNED, 0)
    assert names == [HOSTILE, "alibi", "none", "rope + clamp", "sinusoidal", "t5", "blind ceiling", "chance"]
    page.keyboard.press("Space")
    assert header.get_attribute("aria-sort") == "descending"


def test_rows_are_found_by_their_words_and_their_setting(page):
    page.get_by_role("searchbox").fill("CLAMP bfloat16")
    assert _column(page, COSTS, 0) == [[], [], ["rope + clamp"], ["rope + clamp"]]
    assert page.locator(f"#{COSTS} tr.setting:visible").count() == 2
    assert not page.locator("#task-1-group-1").is_visible()
    assert not page.locator("main figure").first.is_visible()
    assert not page.locator("#accuracy").is_visible()
    shown, every = map(int, re.fullmatch(r"(\d+) of (\d+) rows", page.get_by_role("status").inner_text()).groups())
    assert shown == page.locator("main .table > .scroll > table > tbody > tr:not(.setting):visible").count()
    assert 0 < shown < every
    page.get_by_role("searchbox").fill("no such word")
    assert page.get_by_role("status").inner_text() == f"0 of {every} rows"
    page.get_by_role("searchbox").fill("")
    assert page.get_by_role("status").inner_text() == ""
    assert page.locator("main [hidden]").count() == 0


def test_rows_are_filtered_by_what_became_of_them(page):
    page.get_by_label("Show").select_option("failed or refuted")
    assert _column(page, BACKWARD, 0) == [["rope + clamp"]] * 4
    assert _column(page, "ledger-table", 1) == [["failed"] * page.locator("#ledger-table tbody tr:visible").count()]
    page.get_by_label("Show").select_option("skipped")
    assert not page.locator(f"#{BACKWARD}").is_visible()
    page.get_by_label("Show").select_option("all rows")
    assert page.locator("main [hidden]").count() == 0


def test_a_row_unfolds_to_its_samples_status_and_environment(page, written):
    _, records, _ = written
    button = page.locator(f"#{COSTS}").get_by_role("button", name="t5", exact=True).first
    assert button.get_attribute("aria-expanded") == "false"
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-expanded") == "true"
    text = page.locator(f"#{COSTS} .unfolded").inner_text()
    for said in ("fabricated-cpu-2-cores", "torch 2.99.0", "commit 0123456789 (dirty)", "run run-1", "ok"):
        assert said in text
    wanted = {"encoding": "t5", "metric": "forward_ms", "dtype": "float32", "heads": 4, "length": 256}
    [record] = [one for one in records if wanted.items() <= one.cell.model_dump().items()]
    assert " ".join(f"{ms:.4g}" for ms in record.reading.samples_ms) in text
    page.locator(f"#{COSTS} thead th").nth(1).get_by_role("button").click()
    above = page.locator(f"#{COSTS} .unfolded").evaluate("(row) => row.previousSibling.cells[0].textContent")
    assert above == "t5"  # it went along
    button.click()
    assert page.locator(".unfolded").count() == 0
    assert page.evaluate("new Set([...document.querySelectorAll('[id]')].map((one) => one.id)).size") == (
        page.locator("[id]").count()
    )


def test_a_failure_unfolds_to_its_message(page):
    page.locator(f"#{BACKWARD}").get_by_role("button", name="rope + clamp").first.click()
    text = page.locator(f"#{BACKWARD} .unfolded").inner_text()
    assert "oom" in text
    assert HOSTILE in text


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_readers_scheme_and_its_own_switch(browser, written, scheme):
    with _open(browser, written[-1], color_scheme=scheme) as page:
        assert _paper(page) == PAPER[scheme]
        other = "light" if scheme == "dark" else "dark"
        page.get_by_label("Colours").select_option(other)
        assert _paper(page) == PAPER[other]
        page.get_by_label("Colours").select_option("")
        assert _paper(page) == PAPER[scheme]


def test_print_is_black_on_white_without_tools(browser, written):
    with _open(browser, written[-1], color_scheme="dark") as page:
        page.get_by_label("Colours").select_option("dark")
        page.emulate_media(media="print")
        assert _paper(page) == PAPER["light"]
        assert not page.get_by_role("search").is_visible()
        assert page.locator(f"#{COSTS}").is_visible()


def test_the_first_stop_of_the_keyboard_skips_to_the_content(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"


def test_every_table_has_a_name_and_heads_its_rows_and_columns(page, written):
    report, *_ = written
    for table in report.tables():
        assert page.get_by_role("table", name=table.caption, exact=True).count() >= 1
    headless = "main table :is(thead th:not([scope=col]), tbody tr > :first-child:not(th[scope]))"
    assert page.locator(headless).count() == 0


@pytest.mark.parametrize("width", [400, 1280])
def test_the_page_does_not_scroll_sideways(browser, written, width):
    with _open(browser, written[-1], viewport={"width": width, "height": 800}) as page:
        page.locator(f"#{COSTS}").get_by_role("button", name="t5").first.click()
        assert page.evaluate("document.documentElement.scrollWidth") == width
        if folder := os.environ.get("GRAPE_BENCH_SHOTS"):  # for eyes: the page as it is now
            page.screenshot(path=f"{folder}/{width}.png", full_page=True)


def test_without_scripts_everything_can_be_read(browser, written):
    report, _, path = written
    with _open(browser, path, java_script_enabled=False) as page:
        assert page.locator("main .table > .scroll > table:visible").count() == len(list(report.tables()))
        assert not page.locator("#tools").is_visible()
        page.locator(f"#{COSTS}").get_by_role("link", name="t5").first.click()
        assert page.locator(".folds table:visible").count() == 1  # the browser opens what a link leads to
        assert "ms, 40 rounds" in page.locator(".folds table:visible").inner_text()
