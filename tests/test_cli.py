"""The command line, as far as it works without measuring."""

import csv
import io
import json
import math
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from grape_bench import cli
from grape_bench.cell import CostCell
from grape_bench.commands.list import WHAT as LISTS
from grape_bench.environment import Environment
from grape_bench.errors import UserError
from grape_bench.origin import VARIABLE
from grape_bench.record import MemoryReading, Record
from grape_bench.registry import Registry
from grape_bench.store import Store
from grape_bench.suite import Suite

GOOD = "title: Good\nencodings: [none, rope]\ncost:\n  - {lengths: [8, 16], metrics: [forward_ms]}\n"
BAD = GOOD.replace("rope", "roope")
PLACE = Environment(
    machine="toy", device="cpu", cpu="toy", cores=2, memory_gib=4, torch="2.11", python="3.11", system="X", threads=1
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, "")  # and as it was, after the test
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "good.yaml").write_text(GOOD)
    (tmp_path / "suites" / "bad.yaml").write_text(BAD)
    return tmp_path


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A stand-in for the runner and the report, so that no test here measures."""
    runner, report = ModuleType("grape_bench.runner"), ModuleType("grape_bench.report")
    runner.outcomes = [outcome()]  # type: ignore[attr-defined]
    runner.asked = []  # type: ignore[attr-defined]

    def run(suite: object, options: object) -> object:
        runner.asked.append((suite, options))
        found = runner.outcomes.pop(0)
        if isinstance(found, BaseException):
            raise found
        return found

    runner.RunOptions = SimpleNamespace  # type: ignore[attr-defined]
    runner.run = run  # type: ignore[attr-defined]
    runner.plan = lambda suite, options: f"would measure {suite.name}"  # type: ignore[attr-defined]
    runner.run_cell = lambda suite, options, cell: f"{suite.name} {cell}"  # type: ignore[attr-defined]
    report.write = lambda suite, store, reports, **_: [reports / "x.html", reports / "x.md"]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "grape_bench.runner", runner)
    monkeypatch.setitem(sys.modules, "grape_bench.report", report)
    return runner


def outcome(failed: int = 0, stopped: str = "") -> SimpleNamespace:
    left = "2 cells in 1 block"
    return SimpleNamespace(measured=2, known=3, skipped=1, failed=failed, unexpected=(), stopped=stopped, left=left)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = cli.main(words)
    out, err = capsys.readouterr()
    return code, out, err


def write_record(suite: str) -> Record:
    cell = CostCell(metric="peak_mib", encoding="rope", length=8)
    shared = {"id": cell.id, "suite": suite, "run": "r", "block_run": "b", "at": "2025-01-01T00:00:00Z", "status": "ok"}
    record = Record.model_validate({**shared, "cell": cell, "reading": MemoryReading(peak_mib=2), "environment": PLACE})
    with Store(Path("results")).writing("toy", suite) as writer:
        writer.append([record])
    return record


def test_check_counts_cells_and_blocks(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "check", "suites/good.yaml") == (0, "suites/good.yaml: ok, 4 cells in 2 blocks\n", "")


def test_check_looks_at_every_suite(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capsys, "check", "suites/bad.yaml", "nowhere.yaml", "suites/good.yaml")
    assert (code, out) == (2, "suites/good.yaml: ok, 4 cells in 2 blocks\n")
    assert "suites/bad.yaml:2: encodings[1]: there is no encoding named 'roope'. Did you mean 'rope'?" in err
    assert "there is no suite file nowhere.yaml" in err


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("good", "suites/good.yaml"),
        ("good.yaml", "suites/good.yaml"),
        ("suites/good", "suites/good.yaml"),
        ("suites/goood.yaml", "suites/good.yaml"),
        ("elsewhere/good.yaml", "suites/good.yaml"),
        ("chek", "the command 'check'"),
    ],
)
def test_a_path_that_is_not_there_suggests_one_that_is(
    word: str, meant: str, capsys: pytest.CaptureFixture[str], runner: ModuleType
) -> None:
    code, out, err = said(capsys, word)
    assert (code, out) == (2, "")
    assert f"there is no suite file {word}. Did you mean {meant}?" in err


@pytest.mark.parametrize("command", ["check", "claims"])
@pytest.mark.parametrize("word", ["suites", "x" * 5000, "x" * 253, "a\x00b"])  # 253: too long with .yaml behind it
def test_a_path_that_is_no_file_is_a_users_error(command: str, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, command, word)[0] == 2


@pytest.mark.parametrize("number", ["nan", "-3", "inf", "much"])
@pytest.mark.parametrize("option", ["check x --memory", "compare x y --margin", "x --max-memory", "x --limit-minutes"])
def test_a_number_out_of_bounds_is_a_wrong_word(option: str, number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main([*option.split(), number])
    assert "must be" in capsys.readouterr().err


@pytest.mark.parametrize("kind", [kind for kind in LISTS if kind != "suites"])
def test_list_names_every_plugin(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "list", kind)
    assert code == 0
    table = out.split("\n\n")[0]  # what follows is the map of encodings
    assert {line.split()[0] for line in table.splitlines()[2:] if not line.startswith(" ")} == set(Registry(kind))


def test_list_shows_options_with_their_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    assert "base=10000," in said(capsys, "list", "encodings")[1]


def test_list_suites_shows_broken_ones_too(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "list", "suites")
    rows = {line.split()[0]: line for line in out.splitlines()[2:]}
    assert code == 0
    assert rows["suites/good.yaml"].split()[1:] == ["Good", "4", "2"]
    assert "grape-bench check suites/bad.yaml" in rows["suites/bad.yaml"]


def test_schema_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert "encodings" in json.loads(said(capsys, "schema")[1])["properties"]


def test_claims_print_verdicts_by_file_or_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    claims = (
        "claims:\n  - {id: C1, says: so, relation: above, encodings: [rope], against: [none], metric: forward_ms}\n"
    )
    (folder / "suites" / "claimed.yaml").write_text(GOOD + claims)
    for word in ("suites/claimed.yaml", "claimed"):
        code, out, _ = said(capsys, "claims", word)
        assert (code, out.splitlines()[-1]) == (0, "0 supported, 0 refuted, 1 undecided")
    assert "good claims nothing" in said(capsys, "claims", "good")[2]


def test_records_print_as_csv_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    record = write_record("good")
    [row] = csv.DictReader(io.StringIO(said(capsys, "records", "suites/good.yaml")[1]))
    assert (row["id"], row["peak_mib"]) == (record.id, "2.0")
    [found] = json.loads(said(capsys, "records", "good", "--json")[1])
    assert Record.model_validate(found) == record


def test_records_of_an_unknown_suite_name_those_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    write_record("good")
    assert said(capsys, "records", "god")[::2] == (
        2,
        "god has no records under results. Did you mean 'good'? Allowed: good.\n",
    )


def test_a_comparison_names_the_suites_that_have_records(capsys: pytest.CaptureFixture[str]) -> None:
    write_record("good")
    message = "god has no records under results. Did you mean 'good'? Allowed: good.\n"
    assert said(capsys, "compare", "rope", "none", "--suite", "god") == (2, "", message)


def test_report_takes_all_suites_with_records(capsys: pytest.CaptureFixture[str], runner: ModuleType) -> None:
    assert said(capsys, "report")[0] == 2
    write_record("good")
    expected = (0, "reports/x.md\nreports/x.html\n", "")
    assert (
        said(capsys, "report")
        == said(capsys, "report", "good")
        == said(capsys, "report", "suites/good.yaml")
        == expected
    )


def test_run_is_what_happens_when_no_command_is_named(capsys: pytest.CaptureFixture[str], runner: ModuleType) -> None:
    words = ["--only", "length=8", "suites/good.yaml", "--only", "length=16", "--results", "r", "--fresh"]
    code, out, _ = said(capsys, *words)
    assert (code, out) == (0, "good: 2 measured, 3 known, 1 skipped, 0 failed\nreports/x.md\nreports/x.html\n")
    [(suite, options)] = runner.asked
    assert suite.name == "good"
    assert vars(options) == {
        "results": Path("r"),
        "device": "auto",
        "fresh": True,
        "only": ("length=8", "length=16"),
        "effort": None,
        "retry_failed": False,
        "executor": "local",
        "address": None,
        "deadline": math.inf,
        "memory_gib": None,
    }


def test_failed_cells_are_exit_code_1_and_the_next_suite_still_runs(
    capsys: pytest.CaptureFixture[str], runner: ModuleType
) -> None:
    runner.outcomes[:] = [outcome(failed=one) for one in (1, 0)]
    assert said(capsys, "run", "suites/good.yaml", "suites/good.yaml")[0] == 1
    assert len(runner.asked) == 2


def test_a_stopped_run_is_exit_code_75(capsys: pytest.CaptureFixture[str], runner: ModuleType) -> None:
    runner.outcomes[:] = [outcome(failed=1, stopped="SIGTERM")]
    code, _, err = said(capsys, "run", "suites/good.yaml", "suites/good.yaml")
    assert (code, len(runner.asked)) == (75, 1)
    assert "good: stopped early: SIGTERM; 2 cells in 1 block left\n" in err
    assert "run the same command again" in err


def test_an_interrupt_is_exit_code_75(capsys: pytest.CaptureFixture[str], runner: ModuleType) -> None:
    runner.outcomes[:] = [KeyboardInterrupt()]
    code, _, err = said(capsys, "suites/good.yaml")
    assert (code, err) == (75, "stopped; run the same command again to go on\n")


def test_a_users_error_of_the_runner_is_one_sentence(capsys: pytest.CaptureFixture[str], runner: ModuleType) -> None:
    runner.outcomes[:] = [UserError("no such thing")]
    assert said(capsys, "suites/good.yaml") == (2, "", "no such thing\n")


def test_nothing_runs_where_one_suite_is_wrong(capsys: pytest.CaptureFixture[str], runner: ModuleType) -> None:
    assert said(capsys, "suites/good.yaml", "suites/bad.yaml")[0] == 2
    assert not runner.asked


def test_a_dry_run_prints_the_plan(capsys: pytest.CaptureFixture[str], runner: ModuleType) -> None:
    assert said(capsys, "run", "suites/good.yaml", "--dry-run") == (0, "would measure good\n", "")


@pytest.mark.parametrize(("words", "executes"), [(["--dry-run"], False), (["--cell", "ab"], True), ([], True)])
def test_a_file_that_was_named_runs_where_something_is_measured(
    capsys: pytest.CaptureFixture[str], runner: ModuleType, folder: Path, words: list[str], executes: bool
) -> None:
    text = "from grape_bench.backends.sdpa import Sdpa\nopen('executed', 'w').close()\nclass Kernel(Sdpa): 0\n"
    (folder / "kernel.py").write_text(f"{text}# {words}")  # one text runs once in a process
    code, _, err = said(capsys, "suites/good.yaml", "--backend", "kernel.py:Kernel", *words)
    assert (code, err) == (0, "runs the code of kernel.py, for its class Kernel\n" if executes else "")
    assert (folder / "executed").exists() == executes


def test_a_report_takes_what_was_named_and_runs_nothing(
    capsys: pytest.CaptureFixture[str], runner: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_record("good")
    (folder / "kernel.py").write_text("from grape_bench.backends import Backend\nclass Kernel(Backend): 1 / 0\n")
    seen: list[Suite] = []
    monkeypatch.setattr(sys.modules["grape_bench.report"], "write", lambda suite, *_, **__: seen.append(suite) or [])
    assert said(capsys, "report", "good", "--backend", "kernel.py:Kernel")[::2] == (0, "")
    assert seen[0].cost[0].backends == ("sdpa", "Kernel")


def test_one_cell_may_run_alone(capsys: pytest.CaptureFixture[str], runner: ModuleType) -> None:
    assert said(capsys, "run", "suites/good.yaml", "--cell", "ab") == (0, "good ab\n", "")
    assert said(capsys, "run", "suites/good.yaml", "suites/good.yaml", "--cell", "ab")[0] == 2


def test_an_unknown_executor_suggests_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capsys, "run", "suites/good.yaml", "--executor", "locl")
    assert code == 2
    assert "there is no executor named 'locl'. Did you mean 'local'?" in err
