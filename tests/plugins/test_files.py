"""A file named on the command line: read before it is run, and every mistake one sentence."""

from pathlib import Path

import pytest
from outside import ENCODINGS, TRAP, said

from grape_bench.errors import UserError
from grape_bench.origin import announce, locate, named
from grape_bench.registry import Registry


def test_a_file_that_changes_during_a_run_is_not_taken_for_what_it_was(folder: Path) -> None:
    announce([locate("encodings", "mine.py:Mine")])
    (folder / "mine.py").write_text(ENCODINGS + "\n")
    with pytest.raises(UserError, match=r"mine\.py has changed since this run began"):
        Registry("encodings")["Mine"]


def test_facts_and_options_come_from_the_source_and_from_what_it_extends() -> None:
    announce([locate("encodings", "mine.py:Slow")])
    slow, rope = (Registry("encodings")[name] for name in ("Slow", "rope"))
    assert slow.version.startswith("3+")
    assert slow.options == rope.options
    assert slow.facts == rope.facts | {"version": 3}


def test_checking_and_listing_run_nothing(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "mine.py").write_text(TRAP + ENCODINGS)
    assert said(capsys, "check", "tiny.yaml", "--encoding", "mine.py:Mine") == (
        0,
        "tiny.yaml: ok, 4 cells in 2 blocks\n",
        "",
    )
    code, out, err = said(capsys, "list", "encodings", "--encoding", "mine.py:Mine")
    assert (code, err) == (0, "")
    assert "Give near keys a bonus." in out
    assert not (folder / "executed").exists()


def test_what_was_named_is_forgotten_by_the_next_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "check", "tiny.yaml", "--backend", "kernel.py:Kernel")[0] == 0
    assert [one.name for one in named()] == ["Kernel"]
    assert said(capsys, "check", "tiny.yaml")[0] == 0
    assert named() == ()


@pytest.mark.parametrize(
    ("word", "text", "sentence"),
    [
        ("mine.py", "", "--encoding mine.py: write FILE.py:Class, such as mine.py:Mine"),
        ("mine.py:", "", "write FILE.py:Class"),
        ("none.py:Mine", "", "none.py cannot be read: No such file or directory"),
        (".:Mine", "", ". cannot be read: Is a directory"),
        ("mine.py:Mine", "class Mine(:\n", "mine.py:1: this plug-in is not Python"),
        ("mine.py:Mine", "a\x00b", "mine.py:1: this plug-in is not Python"),
        ("mine.py:Mien", ENCODINGS, "mine.py: it has no class 'Mien'. Did you mean 'Mine'?"),
        ("mine.py:Mine", "", "mine.py: it has no class 'Mine'."),
        ("mine.py:Mine", "\nclass Mine:\n    pass\n", "mine.py:2: Mine is no Encoding; write `class Mine(Encoding)`"),
        ("mine.py:Mine", "class Mine(Mine):\n    pass\n", "mine.py:1: Mine is no Encoding"),
        ("mine.py:rope", "from grape_bench.encodings import Encoding as E\nclass rope(E): 0\n", "named 'rope'"),
    ],
)
def test_a_wrong_file_is_one_sentence(
    capsys: pytest.CaptureFixture[str], folder: Path, word: str, text: str, sentence: str
) -> None:
    (folder / "mine.py").write_text(text)
    code, out, err = said(capsys, "check", "tiny.yaml", "--encoding", word)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert sentence in err


@pytest.mark.parametrize(
    "arguments", ["self", "self, site, base", "self, site, **more", "self, *all", "self, site, inner, base"]
)
def test_an_odd_constructor_is_refused_with_its_line(
    capsys: pytest.CaptureFixture[str], folder: Path, arguments: str
) -> None:
    body = f"class Mine(Encoding):\n    def __init__({arguments}):\n        pass\n"
    (folder / "mine.py").write_text(f"from grape_bench.encodings import Encoding\n{body}")
    code, _, err = said(capsys, "check", "tiny.yaml", "--encoding", "mine.py:Mine")
    assert (code, err) == (
        2,
        "mine.py:3: the constructor of Mine must be `__init__(self, site, *, option: type = default)`\n",
    )


def test_a_backend_takes_no_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capsys, "check", "tiny.yaml", "--backend", "kernel.py:Odd")
    assert (code, err.endswith("the constructor of Odd must be `__init__(self)`\n")) == (2, True)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit('enough')", "SystemExit: enough"),
        ("return", "SyntaxError: 'return' outside function"),
    ],
)
def test_a_file_that_fails_stops_the_run_before_it_measures(
    capsys: pytest.CaptureFixture[str], folder: Path, line: str, sentence: str
) -> None:
    text = f"\n{line}\n{ENCODINGS}"
    (folder / "mine.py").write_text(text)
    code, out, err = said(capsys, "tiny.yaml", "--encoding", "mine.py:Mine")
    assert (code, out) == (2, "")
    assert err.startswith(f"runs the code of mine.py, for its class Mine\nmine.py:2: it cannot be run: {sentence}")
    assert not (folder / "results").exists()


def test_two_files_may_not_share_a_name(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "other.py").write_text(ENCODINGS)
    words = ["check", "tiny.yaml", "--encoding", "mine.py:Mine", "--encoding"]
    assert said(capsys, *words, "mine.py:Mine")[0] == 0  # twice the same is once
    code, _, err = said(capsys, *words, "other.py:Mine")
    assert code == 2
    assert "other.py: there is a plug-in named 'Mine' among the encodings already, in mine.py" in err
