"""What asv's store has of our records, and what is refused."""

import json
import math
import statistics
import subprocess
import sys
from itertools import product

import pytest

from grape_bench import cli
from grape_bench.errors import UserError
from grape_bench.history.export import export
from grape_bench.store import Store


def _files(folder):
    return {path: path.read_bytes() for path in sorted((folder / "results" / "asv").rglob("*.json"))}


def _stored(planted, commit):
    """Each cell of each benchmark at one commit: what asv shows, and the samples behind it."""
    (path,) = (planted.folder / "results" / "asv").glob(f"*/{commit[:8]}-*.json")
    data = json.loads(path.read_text(encoding="utf-8"))
    cells = {}
    for name, row in data["results"].items():
        one = dict(zip(data["result_columns"], row, strict=False))
        points = list(product(*one["params"]))
        for index, point in enumerate(points):
            samples = one.get("samples") or [None] * len(points)
            cells[(name.removeprefix("suite.planted_steps_"), *point)] = (one["result"][index], samples[index])
    return cells


def _append(planted, records):
    with planted.store.writing(records[0].environment.machine, planted.suite) as writer:
        writer.append(records)


def test_values_are_those_of_our_records_to_the_last_digit(planted):
    export([], planted.store)
    cells = _stored(planted, planted.commits[-1])
    checked = 0
    for record in planted.records():
        if record.environment.commit != planted.commits[-1]:
            continue
        cell, reading = record.cell, record.reading
        if cell.kind == "accuracy":
            (right,) = (one for one in reading.scores if (one.length, one.group) == (128, reading.headline))
            key = ("registers.track_extrapolation_error", repr(cell.encoding), "128", str(cell.seed))
            assert cells[key] == ((right.total - right.correct) / right.total, None)
        elif cell.metric == "peak_mib":
            key = ("attention.track_peak_memory", repr(cell.encoding), str(cell.length))
            assert cells[key] == (reading.peak_mib * 2**20, None)
        else:
            key = ("attention.track_forward_time", repr(cell.encoding), str(cell.length))
            seconds = [ms / 1000 for ms in reading.samples_ms]
            assert cells[key] == (statistics.median(seconds), seconds)
        checked += 1
    assert checked == len(cells) == 21


def test_asv_shows_what_was_written(planted):
    export([], planted.store)
    command = [sys.executable, "-m", "asv", "show", planted.commits[-1], "--details"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for name in ("attention.track_forward_time", "attention.track_peak_memory", "registers.track_extrapolation_error"):
        assert f"suite.planted_steps_{name}" in done.stdout
    assert "failed" not in done.stdout


def test_asv_compares_two_commits(planted):
    export([], planted.store)
    command = [sys.executable, "-m", "asv", "compare", planted.commits[6], planted.commits[7], "--only-changed"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [line for line in done.stdout.splitlines() if "track_" in line]
    assert len(rows) == 2
    assert all("track_forward_time('rope'" in row and row.startswith("| +") for row in rows)


def test_exporting_twice_changes_nothing(planted):
    export([], planted.store)
    before = _files(planted.folder)
    assert len(before) == 1 + 1 + len(planted.commits)
    export([planted.suite], planted.store)
    assert _files(planted.folder) == before


def test_failed_skipped_and_missing_are_told_apart(planted):
    mine = [one for one in planted.records() if one.environment.commit == planted.commits[-1]]
    times = {one.cell.encoding: one for one in mine if one.cell.metric == "forward_ms" and one.cell.length == 64}
    again = {"run": "run-later", "at": "2024-04-01T00:00:00Z", "reading": None}
    failed = times["rope"].model_copy(update={**again, "status": "failed", "fault": "oom", "message": "no memory"})
    skipped = times["t5"].model_copy(update={**again, "status": "skipped", "message": "it cannot"})
    _append(planted, [failed, skipped])
    export([], planted.store)
    cells = _stored(planted, planted.commits[-1])
    figures = {name: cells["attention.track_forward_time", repr(name), "64"][0] for name in ("none", "rope", "t5")}
    assert figures["none"] > 0
    assert figures["rope"] is None
    assert math.isnan(figures["t5"])


def test_a_dirty_tree_is_refused(planted):
    (planted.folder / "reports").mkdir()
    (planted.folder / "reports" / "page.html").write_text("not looked at")
    export([], planted.store)
    (planted.folder / "note.txt").write_text("untracked")
    with pytest.raises(UserError, match=r"the working tree has changes \(\?\? note.txt\); commit or remove them"):
        export([], planted.store)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"dirty": True}, "they were measured on changes beside commit"),
        ({"commit": "f" * 40}, "commit ffffffffff is not known here"),
        ({"commit": None, "dirty": None}, "they name no commit"),
    ],
)
def test_records_of_no_commit_are_left_out_with_a_sentence(planted, capsys, changes, sentence):
    first = planted.records()[0]
    _append(planted, [first.model_copy(update={"environment": first.environment.model_copy(update=changes)})])
    assert cli.main(["history", "export"]) == 0
    out, err = capsys.readouterr()
    assert out == "planted-steps: records of 12 commits are in asv's store\n"
    assert f"1 records of planted-steps are left out: {sentence}" in err


def test_an_export_of_nothing_but_such_records_is_refused(planted, capsys):
    changed = [
        one.model_copy(update={"environment": one.environment.model_copy(update={"dirty": True})})
        for one in planted.records()
    ]
    planted.store.path(changed[0].environment.machine, planted.suite).unlink()
    _append(planted, changed)
    assert cli.main(["history", "export"]) == 2
    assert "measured on changes beside commit" in capsys.readouterr().err


def test_a_shallow_clone_is_refused(planted, tmp_path, monkeypatch):
    command = ["git", "clone", "--quiet", "--depth=1", planted.folder.as_uri(), "shallow"]
    subprocess.run(command, cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path / "shallow")
    with pytest.raises(UserError, match="this is a shallow clone"):
        export([], planted.store)


def test_a_folder_that_is_no_checkout_is_refused(planted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="the top folder of a checkout"):
        export([], planted.store)


def test_a_suite_that_asv_would_not_discover_is_refused(planted):
    with pytest.raises(UserError, match="quick has no file in grape_bench/asv_benchmarks/suites"):
        export(["quick"], planted.store)


def test_a_suite_without_records_is_refused(planted, tmp_path):
    with pytest.raises(UserError, match="planted-steps has no records under"):
        export(["planted-steps"], Store(tmp_path / "nothing"))


def test_two_machines_have_a_folder_each(planted):
    first = planted.records()[0]
    other = first.environment.model_copy(update={"machine": "another-gpu", "device": "Another GPU", "cuda": "13.0"})
    with planted.store.writing("another-gpu", planted.suite) as writer:
        writer.append([first.model_copy(update={"environment": other})])
    export([], planted.store)
    machine = json.loads((planted.folder / "results/asv/another-gpu/machine.json").read_text(encoding="utf-8"))
    assert (machine["gpu"], machine["machine"]) == ("Another GPU", "another-gpu")
