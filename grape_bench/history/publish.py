"""asv's pages, made to open without a network and from a disk."""

import re
import shutil
from pathlib import Path

from grape_bench.errors import UserError
from grape_bench.history.commits import Checkout
from grape_bench.history.store import AsvStore

_HERE = Path(__file__).parent
_OUTSIDE = re.compile(r'<(?:script|link)\b[^>]*?(?:src|href)="(https?://[^"]+)"[^>]*>')
# What the pages load from elsewhere, by a part of its address that tells it from the rest.
_VENDORED = {
    "jquery-3": "jquery/jquery.min.js",
    "jquery.flot.min": "flot/jquery.flot.js",
    "jquery.flot.time": "flot/jquery.flot.time.js",
    "jquery.flot.selection": "flot/jquery.flot.selection.js",
    "jquery.flot.categories": "flot/jquery.flot.categories.js",
    "orderBars": "flot-orderbars/jquery.flot.orderBars.js",
    "stupidtable": "stupidtable/stupidtable.min.js",
    "md5": "blueimp-md5/md5.min.js",
    "bootstrap.min.js": "bootstrap/bootstrap.min.js",
    "bootstrap.min.css": "bootstrap/bootstrap.min.css",
}


def publish() -> Path:
    """Let asv write its pages, and put beside them what they would load from elsewhere.

    Returns:
        The page to open.

    Raises:
        UserError: this is no whole checkout, there is nothing to publish, or asv's page loads what we do not have.
    """
    Checkout()
    asv = AsvStore()
    asv.publish()
    make_offline(asv.pages)
    return asv.pages / "index.html"


def make_offline(folder: Path) -> None:
    """Rewrite what the page loads from elsewhere, and give each JSON file a twin that a page on a disk may load.

    Raises:
        UserError: the page loads what we do not have, or not what we count on.
    """
    page = folder / "index.html"
    text = _OUTSIDE.sub(lambda found: _element(found[0], found[1]), page.read_text(encoding="utf-8"))
    jquery = _element("<script>", "jquery-3") + "</script>"
    if jquery not in text:
        raise UserError(f"{page} loads no jquery, which vendor/offline.js extends; is asv's version below 0.7?")
    text = text.replace(jquery, jquery + '\n    <script src="vendor/offline.js"></script>')
    page.write_text(text, encoding="utf-8")
    shutil.copytree(_HERE / "vendor", folder / "vendor")
    shutil.copy(_HERE / "offline.js", folder / "vendor")
    for path in [*folder.rglob("*.json")]:
        # NaN, which asv writes, is no JSON but is JavaScript.
        twin = f"document.currentScript.data = {path.read_text(encoding='utf-8')};\n"
        path.with_name(f"{path.name}.js").write_text(twin, encoding="utf-8")


def _element(tag: str, address: str) -> str:
    """The same element with our copy; checksums and callbacks of the other one are dropped."""
    name = next((file for part, file in _VENDORED.items() if part in address), None)
    if name is None:
        raise UserError(f"asv's page loads {address}, of which there is no copy in grape_bench/history/vendor")
    style = f'<link rel="stylesheet" href="vendor/{name}">'
    return f'<script src="vendor/{name}">' if tag.startswith("<script") else style
