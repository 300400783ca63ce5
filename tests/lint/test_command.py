"""`grape-bench check` on the command line: its forms, its exit codes, and what it explains."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from grape_bench import cli
from grape_bench.cli import main
from grape_bench.origin import VARIABLE

SUITE = "title: A test\nencodings: [{}]\naccuracy: [{{task: registers, train_length: 64, test_lengths: [64, 128]}}]\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, "")
    for name, encodings in (("good", "rope"), ("noted", "alibi"), ("unwise", "rope, learned"), ("wrong", "roope")):
        (tmp_path / f"{name}.yaml").write_text(SUITE.format(encodings), encoding="utf-8")


@pytest.mark.parametrize(
    ("names", "code"),
    [(["good"], 0), (["noted"], 0), (["unwise"], 1), (["good", "unwise", "noted"], 1), (["wrong", "unwise"], 2)],
)
def test_the_exit_code_is_that_of_the_worst(names: list[str], code: int) -> None:
    assert main(["check", *(f"{name}.yaml" for name in names)]) == code


def test_text_has_the_findings_and_a_line_for_each_suite(capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "unwise.yaml", "good.yaml"])
    first, remedy, count, good = capsys.readouterr().out.splitlines()
    assert first.startswith("unwise.yaml:2: warning GB103 rows 64 to 127 of learned")
    assert remedy.startswith("    remedy: ")
    assert (count, good) == ("unwise.yaml: 1 finding, 2 cells in 2 blocks", "good.yaml: ok, 1 cell in 1 block")


def test_a_check_loads_no_library_of_arrays() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(Path(cli.__file__).parents[1])!r}); from grape_bench.cli import main; "
        "main(['check', 'unwise.yaml']); assert not {'torch', 'numpy', 'scipy', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_json_is_one_document_for_all_suites(capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "unwise.yaml", "noted.yaml", "--format", "json"])
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [(one["code"], one["severity"], one["place"], one["line"]) for one in found] == [
        ("GB103", "warning", "unwise.yaml", 2),
        ("GB106", "note", "noted.yaml", 3),
    ]


def test_github_gets_an_annotation_at_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "unwise.yaml", "good.yaml", "--format", "github"])
    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith("::warning file=unwise.yaml,line=2,title=GB103::rows 64 to 127 of learned")


@pytest.mark.parametrize("code", ["GB101", "GB192", "GB201"])
def test_explain_tells_what_a_code_means(capsys: pytest.CaptureFixture[str], code: str) -> None:
    assert main(["check", "--explain", code]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{code} (")
    assert "\nremedy: " in out


def test_an_unknown_code_is_wrong_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--explain", "GB1001"]) == 2
    assert "'GB1001' is no code of check. Did you mean 'GB101'?" in capsys.readouterr().err


def test_nothing_to_check_is_wrong_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == 2
    assert "name a suite's file" in capsys.readouterr().err


def test_memory_is_that_of_the_device_that_is_asked_about() -> None:
    Path("large.yaml").write_text(
        "title: t\nencodings: [alibi]\ncost: [{lengths: [32768], metrics: [peak_mib], causal: true}]\n",
        encoding="utf-8",
    )
    assert [main(["check", "large.yaml", "--memory", gib]) for gib in ("33", "31")] == [0, 1]
