"""A bundle that was made validates; each way to tamper with one is refused with its own reason."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grape_bench import cli
from grape_bench.bundle import MANIFEST, REPORT, SUITE, bundle, report, sha256
from grape_bench.cell import AccuracyCell
from grape_bench.record import Record, RunStart
from grape_bench.store import Store
from grape_bench.suite import expand, load
from grape_bench.validate import validate

TEXT = """title: A suite to submit
baseline: none
encodings: [none, rope, alibi]
seeds: [0, 1]
cost:
  - {scope: attention, lengths: [64], heads: [2], head_dim: [16], metrics: [forward_ms, peak_mib]}
accuracy:
  - {task: registers, train_length: 48, test_lengths: [48, 96]}
"""
RECORDS = "records/fabricated-cpu-2-cores.jsonl"
Files = dict[str, bytes]
Lines = list[dict[str, Any]]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_record: Callable[..., Record]) -> Path:
    """The bundle of a shipped suite, in the closed division."""
    monkeypatch.chdir(tmp_path)
    path = Path("suites", "mine.yaml")
    path.parent.mkdir()
    path.write_text(TEXT, encoding="utf-8")
    clean = make_record(expand(load(path))[0]).environment.model_copy(update={"dirty": False})
    store = Store(Path("results"))
    with store.writing(clean.machine, "mine") as writer:
        writer.append([RunStart(run="run-1", suite="mine", at="2024-01-01T00:00:00Z")])
        writer.append(make_record(cell, suite="mine", environment=clean) for cell in expand(load(path)))
    assert bundle(path, store, Path("mine.zip")).division == "closed"
    return Path("mine.zip")


def files(path: Path) -> Files:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(content: Files, *, signed: bool = True) -> Path:
    """A zip of these files, its manifest naming them as they are now."""
    if signed:
        manifest = json.loads(content[MANIFEST])
        manifest["files"] = {name: sha256(data) for name, data in content.items() if name != MANIFEST}
        content[MANIFEST] = json.dumps(manifest).encode()
    target = Path("other.zip")
    with zipfile.ZipFile(target, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return target


def edited(path: Path, edit: Callable[[Lines], Any], *, honest: bool = False) -> list[str]:
    """Reasons against the bundle with some of its records edited, and its report made anew if `honest`."""
    content = files(path)
    lines = [json.loads(line) for line in content[RECORDS].splitlines()]
    edit(lines)
    content[RECORDS] = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    if honest:
        records = [Record.model_validate(line) for line in lines]
        content[REPORT] = report(load(Path("suites", "mine.yaml")), records)
    return validate(written(content))


def accuracies(lines: Lines) -> Lines:
    return [line for line in lines if line["cell"]["kind"] == "accuracy"]


def test_a_bundle_validates(made: Path) -> None:
    assert set(files(made)) == {MANIFEST, SUITE, REPORT, RECORDS}
    assert validate(made) == []


def test_the_same_records_give_the_same_bytes(made: Path) -> None:
    before = made.read_bytes()
    bundle(Path("suites", "mine.yaml"), Store(Path("results")), made)
    assert made.read_bytes() == before


def test_one_flipped_byte_is_refused(made: Path) -> None:
    content = files(made)
    text = bytearray(content[RECORDS])
    text[len(text) // 2] ^= 1
    content[RECORDS] = bytes(text)
    assert validate(written(content, signed=False)) == [
        f"{RECORDS} is not the file that the manifest names: its sha256 differs"
    ]


def test_a_zip_with_a_flipped_byte_is_refused(made: Path) -> None:
    data = bytearray(made.read_bytes())
    data[len(data) // 2] ^= 1
    made.write_bytes(data)
    (reason,) = validate(made)
    assert reason.startswith("it is no zip that can be read: ")


def test_an_edited_mean_is_refused(made: Path) -> None:
    content = files(made)
    text = content[REPORT].decode()
    place = next(i for i, one in enumerate(text) if one.isdigit() and text[i - 2 : i] == "0.")
    content[REPORT] = (text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1 :]).encode()
    (reason,) = validate(written(content))
    assert "does not follow from the records" in reason


def test_edited_samples_are_refused_beside_the_old_report(made: Path) -> None:
    def halve(lines: Lines) -> None:
        time = next(line for line in lines if line["cell"]["metric"] == "forward_ms")
        time["reading"]["samples_ms"] = [one / 2 for one in time["reading"]["samples_ms"]]

    assert any("does not follow from the records" in one for one in edited(made, halve))


def test_a_reused_seed_is_refused(made: Path) -> None:
    def reuse(lines: Lines) -> None:
        by_seed = {line["cell"]["seed"]: line for line in accuracies(lines) if line["cell"]["encoding"] == "rope"}
        by_seed[1]["reading"] = by_seed[0]["reading"]

    reasons = edited(made, reuse, honest=True)
    assert any("seeds [0, 1] saw the same data" in one for one in reasons)
    assert any("have one and the same training" in one for one in reasons)


def test_a_dirty_tree_is_refused_in_the_closed_division(made: Path) -> None:
    reasons = edited(made, lambda lines: lines[0]["environment"].update(dirty=True), honest=True)
    assert reasons == [
        "the closed division takes clean commits, and there are records of the commit 0123456789 with changes"
    ]


def test_the_open_division_states_its_changes(made: Path) -> None:
    path = Path("suites", "mine.yaml")
    shipped = path.read_text(encoding="utf-8")
    path.write_text(shipped.replace("[0, 1]", "[0, 1, 2]"), encoding="utf-8")
    assert validate(made) == ["it claims the closed division, and seeds differs from that of mine.yaml"]
    path.write_text(shipped, encoding="utf-8")
    other = Path("mine.yaml")
    other.write_text(shipped.replace("lengths: [64]", "lengths: [64, 128]"), encoding="utf-8")
    manifest = bundle(other, Store(Path("results")), Path("open.zip"))
    assert (manifest.division, manifest.changes) == ("open", ("cost differs from that of mine.yaml",))
    assert validate(Path("open.zip")) == []
    content = files(Path("open.zip"))
    content[MANIFEST] = content[MANIFEST].replace(b"cost differs", b"about differs")
    assert validate(written(content)) == [
        "it states other changes to its suite than there are: cost differs from that of mine.yaml"
    ]


@pytest.mark.parametrize("name", ["../evil", "/etc/passwd", "records/../../evil.jsonl", "records/a.exe", "notes.txt"])
def test_a_path_that_leaves_the_bundle_is_refused(made: Path, name: str) -> None:
    assert validate(written(files(made) | {name: b"x"})) == [
        f"{name!r} does not belong into a bundle, or is there twice"
    ]


def test_a_giant_line_is_refused(made: Path) -> None:
    content = files(made)
    content[RECORDS] += b'{"kind": "record", "x": "' + b"a" * 2**21 + b'"}\n'
    (reason,) = validate(written(content))
    assert "a line of 2048 KiB; a record has at most 1024" in reason


def test_what_all_entries_hold_together_is_bounded(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = sum(map(len, files(made).values()))
    monkeypatch.setattr("grape_bench.unpack._LARGEST", size)
    assert validate(made) == []
    monkeypatch.setattr("grape_bench.unpack._LARGEST", size - 1)
    assert validate(made) == ["it holds more than 0 MiB"]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_what_is_no_number_is_refused(made: Path, number: str) -> None:
    content = files(made)
    first = json.loads(content[RECORDS].splitlines()[0])["reading"]["samples_ms"][0]
    content[RECORDS] = content[RECORDS].replace(str(first).encode(), number.encode(), 1)
    (reason,) = validate(written(content))
    assert "no record" in reason
    assert "finite number" in reason or "JSON" in reason


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (lambda lines: lines[0].update(id="0" * 16), "its id is not that of its cell"),
        (lambda lines: lines.append(lines[0]), "2 readings as member in the one block run"),
        (lambda lines: lines[0]["cell"].update(encoding="t5"), "its id is not that of its cell"),
        (lambda lines: lines[0].update(suite="other"), "it is of the suite other"),
        (lambda lines: lines[0].update(schema=99), "schema 99 is newer"),
        (lambda lines: lines[0]["environment"].update(machine="elsewhere"), "it is of the machine elsewhere"),
        (lambda lines: lines[0].update(status="failed", fault="oom"), "a status of failed with a reading"),
        (lambda lines: lines[0]["reading"]["samples_ms"].__setitem__(0, -1.0), "a time is above 0"),
        (lambda lines: accuracies(lines)[0]["reading"]["scores"][0].update(correct=9999), "right answers lie between"),
        (lambda lines: accuracies(lines)[0]["reading"].update(data_sha="0"), "saw different data"),
        (lambda lines: accuracies(lines)[0].update(reading=lines[0]["reading"]), "of accuracy with a reading of time"),
        (lambda lines: lines[0]["environment"].update(machine="\x1b[31m"), "it is of the machine \ufffd[31m"),
    ],
)
def test_each_fault_has_its_own_reason(made: Path, edit: Callable[[Lines], Any], reason: str) -> None:
    assert any(reason in one for one in edited(made, edit))


def fewer_rounds(lines: Lines) -> None:
    for key in ("samples_ms", "wall_ms"):
        del lines[1]["reading"][key][3:]


def impossible_chance(lines: Lines) -> None:
    for line in accuracies(lines):
        for score in line["reading"]["scores"]:
            score.update(nats=1.0, blind_nats=2.0, chance=0)


@pytest.mark.parametrize("edit", [fewer_rounds, impossible_chance])
def test_readings_that_give_no_report_are_refused(made: Path, edit: Callable[[Lines], Any]) -> None:
    (reason,) = edited(made, edit)
    assert reason.startswith("no report follows from the records: ")


def test_a_cell_of_another_version_is_no_cell_of_the_suite(made: Path) -> None:
    def older(lines: Lines) -> None:
        cell = accuracies(lines)[0]["cell"]
        cell["versions"] = ["registers@0"]
        accuracies(lines)[0]["id"] = AccuracyCell.model_validate(cell).id

    assert any("with versions registers@0 is no cell of the suite" in one for one in edited(made, older))


def test_a_label_that_holds_a_script_is_shown_inert(made: Path) -> None:
    from grape_bench.registry import Registry
    from grape_bench.report import build

    def hostile(lines: Lines) -> None:
        lines[0].update(status="failed", fault="error", message="<script>alert(1)</script>", reading=None)

    assert edited(made, hostile, honest=True) == []
    content = files(Path("other.zip"))
    records = [Record.model_validate_json(line) for line in content[RECORDS].splitlines()]
    suite = load(Path("suites", "mine.yaml"))
    page = build(suite, expand(suite), records, Registry("metrics"))
    for renderer in ("html", "markdown"):
        text = Registry("renderers")[renderer].load()().render(page)
        assert "<script>alert" not in text
        assert "alert(1)" in text


def named(suite: str) -> bytes:
    """A manifest of a suite of this name."""
    return json.dumps({"suite": suite, "package": "1", "division": "open", "files": {}}).encode()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({MANIFEST: b"{}"}, "manifest.json: suite: Field required"),
        ({MANIFEST: b"no json"}, "manifest.json: Invalid JSON"),
        ({MANIFEST: named("../mine")}, "manifest.json: suite: a name has 1 to 60 characters, and no slash"),
        ({MANIFEST: named("x" * 300)}, "manifest.json: suite: a name has 1 to 60 characters, and no slash"),
        ({SUITE: b"title: [unclosed"}, "mine.yaml:"),
        ({SUITE: b"\xff\xfe"}, "suite.yaml is not UTF-8"),
    ],
)
def test_a_broken_part_is_refused(made: Path, change: Files, reason: str) -> None:
    reasons = validate(written(files(made) | change, signed=MANIFEST not in change))
    assert reasons[0].startswith(reason)


@pytest.mark.parametrize("data", [b"", b"PK", b"not a zip" * 100])
def test_what_is_no_zip_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.zip").write_bytes(data)
    assert validate(tmp_path / "x.zip")[0].startswith("it is no zip that can be read")


def test_the_commands_say_what_they_found(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bundle", "mine"]) == 0
    assert cli.main(["validate", "mine.zip"]) == 0
    assert "mine.zip: closed division" in capsys.readouterr().out
    written(files(made) | {"x": b""})
    assert cli.main(["validate", "mine.zip", "other.zip"]) == 1
    assert "mine.zip: accepted\nother.zip: refused\n  'x' does not belong" in capsys.readouterr().out
    assert cli.main(["bundle", "nothing-of-that-name"]) == 2
