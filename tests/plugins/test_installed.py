"""What installed packages offer: read from their entry points, and imported only to be measured."""

import sys
from pathlib import Path

import pytest
from outside import ENCODINGS, TRAP, install, said

from grape_bench.errors import UserError
from grape_bench.registry import Registry


def test_an_installed_package_is_read_and_not_imported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(folder, text=TRAP + ENCODINGS)
    monkeypatch.syspath_prepend(folder)
    registry = Registry("encodings")
    assert "nearby" in registry
    assert "nearby" in list(registry)
    assert (registry["nearby"].summary, registry["nearby"].source) == ("Give near keys a bonus.", "a test.")
    assert registry["nearby"].version.startswith("1+")
    assert "shop" not in sys.modules
    assert not (folder / "executed").exists()


@pytest.mark.parametrize(
    ("points", "sentence"),
    [
        ("nearby = shop.shelf.far:Mine", "shop.shelf.far cannot be read"),
        ("nearby = market.near:Mine", "market.near cannot be read"),
        ("nearby = shop.shelf.near", "its last line must be `PLUGIN = Class`"),
        ("nearby = shop.shelf.near:Other", "it has no class 'Other'"),
    ],
)
def test_a_broken_installed_plugin_spoils_no_list(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch, points: str, sentence: str
) -> None:
    install(folder, points=points)
    monkeypatch.syspath_prepend(folder)
    code, out, _ = said(capsys, "list", "encodings")
    assert code == 0
    assert "Turn each pair of channels" in " ".join(out.split())
    with pytest.raises(UserError, match=sentence):
        Registry("encodings")["nearby"]


def test_an_installed_package_takes_no_name_of_ours(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(folder, points="rope = shop.shelf.near:Mine")
    monkeypatch.syspath_prepend(folder)
    rope = Registry("encodings")["rope"].origin
    assert rope is not None
    assert (rope.module, rope.ours) == ("grape_bench.encodings.rope", True)
    with pytest.raises(UserError, match="there is a plug-in named 'rope' among the encodings already"):
        list(Registry("encodings"))
