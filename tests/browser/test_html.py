"""The page in a browser without a network."""

import re
import shutil
import subprocess

import pytest

from grape_bench.registry import Registry
from grape_bench.report import build, save

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless",
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

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed"),
]


@pytest.fixture
def page(fabricated, tmp_path):
    """A report in which one encoding bears a hostile name."""
    changed = [
        one.model_copy(update={"message": HOSTILE}) if one.status == "failed" else one for one in fabricated.records
    ]
    cells = [_renamed(cell) for cell in fabricated.cells]
    records = [one.model_copy(update={"cell": _renamed(one.cell)}) for one in changed]
    encodings = tuple(HOSTILE if one == "rope" else one for one in fabricated.suite.encodings)
    suite = fabricated.suite.model_copy(update={"encodings": encodings})
    report = build(suite, cells, records, Registry("metrics"))
    return report, save(report, tmp_path / "reports")[-1]


def _renamed(cell):
    return cell.model_copy(update={"encoding": HOSTILE}) if cell.encoding == "rope" else cell


def _open(path, folder, *flags):
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", *flags, path.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def test_all_tables_and_figures_are_shown(page, tmp_path):
    report, path = page
    dom = _open(path, tmp_path, "--dump-dom")
    assert dom.count("<table") == len(list(report.tables()))
    assert dom.count("<svg") == len(list(report.figures()))
    for piece in (*report.tables(), *report.figures(), *report.sections):
        assert f'id="{piece.id}"' in dom


def test_a_hostile_name_is_inert(page, tmp_path):
    report, path = page
    dom = _open(path, tmp_path, "--dump-dom")
    assert "<script" not in dom
    assert f"<title>{report.title}</title>" in dom
    assert "&lt;script&gt;" in dom


def test_nothing_is_asked_of_the_network(page, tmp_path):
    _, path = page
    dom = _open(path, tmp_path, "--dump-dom")
    assert not re.findall(r'(?:src|href)="?\s*(?:https?:)?//', dom)
    assert not re.findall(r"url\((?!#)|@import", dom)


@pytest.mark.parametrize("dark", [False, True])
def test_the_page_follows_the_readers_scheme(page, tmp_path, dark):
    from matplotlib.image import imread

    _, path = page
    shot = tmp_path / "page.png"
    scheme = ["--blink-settings=preferredColorScheme=0"] if dark else []
    _open(path, tmp_path, f"--screenshot={shot}", "--window-size=1280,1600", *scheme)
    paper = imread(shot)[5, 5, :3] * 255
    assert paper.round().tolist() == ([0x16, 0x18, 0x1D] if dark else [255, 255, 255])


def test_the_page_does_not_scroll_sideways_on_a_phone(page, tmp_path):
    """The page's own width at 400 pixels, read in a frame of that width."""
    _, path = page
    frame = tmp_path / "frame.html"
    frame.write_text(
        f'<iframe src="{path.as_uri()}" style="width:400px;height:800px;border:0"></iframe><script>\n'
        "onload = () => { const root = frames[0].document.documentElement;\n"
        "document.title = `${root.scrollWidth} of ${root.clientWidth}`; }\n</script>",
        encoding="utf-8",
    )
    dom = _open(frame, tmp_path, "--dump-dom", "--allow-file-access-from-files", "--window-size=800,900")
    assert "<title>400 of 400</title>" in dom
