"""asv's pages open without a network, from a disk and from a server."""

import functools
import http.server
import json
import re
import shutil
import subprocess
import threading

import pytest

from grape_bench import cli
from grape_bench.errors import UserError
from grape_bench.history import publish as module
from grape_bench.history.export import export
from grape_bench.history.publish import make_offline

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
    "--window-size=1280,900",
    "--virtual-time-budget=10000",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
VENDOR = module.Path(module.__file__).parent / "vendor"


@pytest.fixture
def page(planted, capsys):
    export([], planted.store)
    assert cli.main(["history", "publish"]) == 0
    assert capsys.readouterr().out == "reports/asv/index.html\n"
    return planted.folder / "reports" / "asv" / "index.html"


def _open(address, folder, *flags):
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", *flags, address]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def test_nothing_is_loaded_from_elsewhere(page):
    text = page.read_text(encoding="utf-8")
    assert not re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="(?:https?:)?//', text)
    assert "integrity=" not in text
    for name in re.findall(r'(?:src|href)="(vendor/[^"]+)"', text):
        assert (page.parent / name).is_file()
    assert len(re.findall(r'"vendor/', text)) == 11


def test_each_json_file_has_a_twin_that_a_page_on_a_disk_may_load(page):
    files = [*page.parent.rglob("*.json")]
    assert len(files) > 5
    for path in files:
        twin = path.with_name(f"{path.name}.js").read_text(encoding="utf-8")
        assert twin == f"document.currentScript.data = {path.read_text(encoding='utf-8')};\n"


def test_publishing_again_starts_afresh_and_leaves_what_is_beside_it(page):
    (page.parent.parent / "quick.html").write_text("ours")
    (page.parent / "old.html").write_text("of an earlier time")
    assert cli.main(["history", "publish"]) == 0
    assert (page.parent.parent / "quick.html").is_file()
    assert not (page.parent / "old.html").exists()


def test_a_page_that_loads_what_we_do_not_have_is_refused(tmp_path):
    (tmp_path / "index.html").write_text('<script src="https://example.org/new.js" integrity="x"></script>')
    with pytest.raises(UserError, match=r"loads https://example.org/new.js, of which there is no copy"):
        make_offline(tmp_path)


def test_a_page_without_what_ours_extends_is_refused(tmp_path):
    (tmp_path / "index.html").write_text('<script src="https://example.org/md5.js"></script>')
    with pytest.raises(UserError, match="loads no jquery"):
        make_offline(tmp_path)


def test_without_an_export_there_is_nothing_to_publish(planted, capsys):
    assert cli.main(["history", "publish"]) == 2
    assert "asv publish: " in capsys.readouterr().err


def test_what_is_vendored_has_its_licence_and_is_small():
    folders = [one for one in VENDOR.iterdir() if one.is_dir()]
    assert len(folders) == 6
    assert all((one / "LICENSE.txt").is_file() for one in folders)
    assert sum(path.stat().st_size for path in VENDOR.rglob("*")) < 600_000


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")
@pytest.mark.parametrize("scheme", ["file", "http"])
def test_a_graph_is_drawn(page, tmp_path, scheme):
    """On the graph's page, the line of the drawing is one of its canvases' pixels."""
    from matplotlib.image import imread

    handler = functools.partial(_Quiet, directory=page.parent)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = page.as_uri() if scheme == "file" else f"http://127.0.0.1:{server.server_port}/index.html"
    address = f"{base}#suite.planted_steps_attention.track_forward_time?p-length=128"
    try:
        dom = _open(address, tmp_path, "--dump-dom")
        _open(address, tmp_path, f"--screenshot={tmp_path / 'graph.png'}")
    finally:
        server.shutdown()
    assert "Can not determine" not in dom
    assert 'class="flot-base"' in dom
    assert json.loads((page.parent / "index.json").read_text(encoding="utf-8"))["project"] in dom
    pixels = imread(tmp_path / "graph.png")[200:700, 400:1200, :3]
    coloured = (pixels.max(axis=2) - pixels.min(axis=2)) > 0.2  # lines have colours; axes and words have none
    assert coloured.sum() > 500


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format, *args):
        """Say nothing."""
