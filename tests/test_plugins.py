"""Plug-ins from outside: a user's file named on the command line, and what an installed package offers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from grape_bench import cli, suite
from grape_bench.cell import CostCell
from grape_bench.errors import UserError
from grape_bench.origin import VARIABLE, Origin, announce, locate, named
from grape_bench.record import Record
from grape_bench.registry import Registry
from grape_bench.store import Store

HOME = Path(__file__).resolve().parents[1]
SUITE = """
title: Tiny
baseline: none
processes: 1
encodings: [none, {more}rope]
cost:
  - {{lengths: [8], heads: [2], head_dim: [8], metrics: [forward_ms]}}
  - {{lengths: [8], heads: [2], head_dim: [8], metrics: [peak_mib], encodings: [rope], backends: [eager]}}
"""
ENCODINGS = '''
import torch
from torch import nn

from grape_bench.bias import Toeplitz
from grape_bench.encodings import At, Encoding
from grape_bench.encodings.rope import Rope as Turning


class Mine(Encoding):
    """Give near keys a bonus.

    Source: a test.
    """

    laws = ("relative", "reflection")

    def __init__(self, site, *, reach: int = 4):
        super().__init__()
        self.reach = reach
        self.bonus = nn.Parameter(torch.zeros(site.heads))

    def bias(self, q, features, at):
        return Toeplitz(self._values, [self.learned().to(q.dtype)], at.q_pos, at.k_pos, uniform=at.uniform)

    def learned(self):
        return self.bonus

    def _values(self, distance, bonus):
        return bonus.reshape(-1, *[1] * distance.dim()) * (distance.abs() <= self.reach)


class Detached(Mine):
    """Lose the gradient."""

    def learned(self):
        return self.bonus.detach()


class Liar(Mine):
    """Declare to be relative, and scale queries by their positions."""

    def rotate(self, q, k, features, at):
        return q * (1 + at.q_pos[:, None] / 100), k


class Slow(Turning):
    """Turn slowly."""

    version = 3
'''
BACKENDS = '''
from grape_bench.backends import Backend
from grape_bench.backends.sdpa import Sdpa


class Kernel(Sdpa):
    """Do as torch does."""


class Wrong(Sdpa):
    """Forget the scale."""

    def attend(self, q, k, v, bias, mask, *, scale=None):
        return super().attend(q, k, v, bias, mask, scale=1.0)


class Odd(Backend):
    def __init__(self, blocks):
        self.blocks = blocks
'''
TRAP = "from pathlib import Path\nPath('executed').touch()\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, "")  # and as it was, after the test
    write(tmp_path)
    return tmp_path


def write(folder: Path, more: str = "") -> None:
    (folder / "tiny.yaml").write_text(SUITE.format(more=more))
    (folder / "mine.py").write_text(ENCODINGS)
    (folder / "kernel.py").write_text(BACKENDS)


def install(folder: Path, text: str = ENCODINGS, points: str = "nearby = shop.shelf.near:Mine") -> None:
    """A package with an entry point, as pip would leave it."""
    module = folder / "shop" / "shelf" / "near.py"
    module.parent.mkdir(parents=True)
    for package in (module.parent, module.parents[1]):
        (package / "__init__.py").write_text("")
    module.write_text(text)
    facts = folder / "shop-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: shop\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[grape_bench.encodings]\n{points}\n")


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = cli.main(words)
    out, err = capsys.readouterr()
    return code, out, err


def cells(text: str = SUITE.format(more="")) -> dict[tuple[str, str, str], tuple[str, ...]]:
    """Versions by metric, backend and encoding."""
    found = suite.expand(suite.parse(text, "tiny.yaml"))
    return {(one.metric, one.backend, one.encoding): one.versions for one in found}


class Run:
    """One run in a process of its own, with workers."""

    def __init__(self, folder: Path, *words: str):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HOME), str(folder)]), "OMP_NUM_THREADS": "1"}
        environment.pop(VARIABLE, None)
        command = [sys.executable, "-m", "grape_bench", "tiny.yaml", "--device", "cpu", *words]
        self.done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
        records = [one for one in Store(folder / "results").records("tiny") if one.role == "member"]
        self.records = {(one.cell.metric, one.cell.backend, one.cell.encoding): one for one in records}
        self.report = (folder / "reports" / "tiny.md").read_text()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Good ones and bad ones in one run, to load torch once."""
    folder = tmp_path_factory.mktemp("run")
    write(folder, more="nearby, ")
    install(folder)
    words = [f"--encoding=mine.py:{name}" for name in ("Mine", "Detached", "Liar")]
    return Run(folder, *words, "--backend=kernel.py:Kernel", "--backend=kernel.py:Wrong")


def test_a_file_is_measured_into_a_report(run: Run) -> None:
    assert run.records["forward_ms", "sdpa", "Mine"].status == "ok"
    assert any(line.startswith("| Mine ") for line in run.report.splitlines())


def test_what_runs_is_said_once(run: Run) -> None:
    assert run.done.stderr.count("runs the code of mine.py, for its class Mine\n") == 1
    assert "Traceback" not in run.done.stderr


def test_an_entry_point_is_measured_under_its_own_name(run: Run) -> None:
    assert run.records["forward_ms", "sdpa", "nearby"].status == "ok"


@pytest.mark.parametrize(("name", "reason"), [("Detached", "gradient of bonus"), ("Liar", "relative")])
def test_an_encoding_is_gated_before_it_is_timed(run: Run, name: str, reason: str) -> None:
    assert run.done.returncode == 1
    assert refusal(run.records["forward_ms", "sdpa", name]) == ("failed", "gate")
    assert reason in str(run.records["forward_ms", "sdpa", name].message)


def test_a_kernel_is_gated_before_it_is_timed(run: Run) -> None:
    assert (
        run.records["forward_ms", "Kernel", "rope"].status == run.records["peak_mib", "Kernel", "rope"].status == "ok"
    )
    assert refusal(run.records["forward_ms", "Wrong", "rope"]) == ("failed", "gate")
    assert refusal(run.records["peak_mib", "Wrong", "rope"]) == ("failed", "gate")


def refusal(record: Record) -> tuple[str, str | None]:
    return record.status, record.fault


def test_a_named_encoding_joins_all_lists_but_an_entrys_own() -> None:
    announce([locate("encodings", "mine.py:Mine")])
    found = set(cells())
    assert ("forward_ms", "sdpa", "Mine") in found
    assert ("peak_mib", "eager", "Mine") not in found


def test_a_named_encoding_that_the_suite_speaks_of_is_not_added() -> None:
    announce([locate("encodings", "mine.py:Mine")])
    written = {encoding for _, _, encoding in cells(SUITE.format(more="Mine(reach=2) + rope, "))}
    assert written == {"none", "rope", "Mine(reach=2) + rope"}


def test_a_named_backend_joins_every_cost_entry() -> None:
    announce([locate("backends", "kernel.py:Kernel")])
    assert {backend for _, backend, _ in cells()} == {"sdpa", "eager", "Kernel"}


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("encoding=Mine", {("sdpa", "none"), ("sdpa", "Mine"), ("Kernel", "none"), ("Kernel", "Mine")}),
        ("backend=Kernel", {("Kernel", "none"), ("Kernel", "rope"), ("Kernel", "Mine")}),
    ],
)
def test_only_what_was_named_may_be_measured_beside_its_baseline(word: str, expected: set[tuple[str, str]]) -> None:
    announce([locate("encodings", "mine.py:Mine"), locate("backends", "kernel.py:Kernel")])
    tiny = suite.parse(SUITE.format(more=""), "tiny.yaml")
    blocks = suite.narrow(suite.group(suite.expand(tiny), tiny.baseline), [word])
    found = [cell for block in blocks for cell in block.cells if isinstance(cell, CostCell)]
    assert {(one.backend, one.encoding) for one in found} == expected


@pytest.mark.parametrize(
    ("kind", "word", "text", "sentence"),
    [
        (
            "encodings",
            "mine.py:Mine",
            "cost:\n  - {lengths: [8], metrics: [forward_ms], encodings: [none]}\n",
            "of its own",
        ),
        (
            "backends",
            "kernel.py:Kernel",
            "accuracy:\n  - {task: registers, train_length: 8, test_lengths: [8]}\n",
            "cost",
        ),
    ],
)
def test_a_suite_without_a_place_for_it_says_so(kind: str, word: str, text: str, sentence: str) -> None:
    announce([locate(kind, word)])
    with pytest.raises(UserError, match=rf"no place for .*{sentence}"):
        suite.parse(f"title: x\nencodings: [none]\n{text}", "x.yaml")


def test_a_changed_source_is_a_new_cell(folder: Path) -> None:
    announce([locate("encodings", "mine.py:Mine")])
    before = cells()
    (folder / "mine.py").write_text(ENCODINGS.replace("<=", "<"))
    announce([locate("encodings", "mine.py:Mine")])
    changed = {key for key, versions in cells().items() if versions != before[key]}
    assert changed == {("forward_ms", "sdpa", "Mine")}
    assert [one.split("+")[0] for one in cells()["forward_ms", "sdpa", "Mine"]][:1] == ["Mine@1"]


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
    assert Registry("encodings")["rope"].origin == ours("rope")
    with pytest.raises(UserError, match="there is a plug-in named 'rope' among the encodings already"):
        list(Registry("encodings"))


def ours(name: str) -> Origin:
    return Origin(
        "encodings", name, str(HOME / "grape_bench" / "encodings" / f"{name}.py"), f"grape_bench.encodings.{name}"
    )
