"""Records of many machines and people: what is pooled, what is never compared, and what the page says."""

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from grape_bench import cli
from grape_bench.board import Board
from grape_bench.bundle import bundle
from grape_bench.cell import Cell
from grape_bench.extrapolation import area
from grape_bench.pool import pool
from grape_bench.record import AccuracyReading, Record, RunStart
from grape_bench.store import Store
from grape_bench.suite import expand, parse
from grape_bench.tuning import TUNING_SEED

HOME = Path(__file__).resolve().parents[1]
FEW = """title: A suite to submit
baseline: none
encodings: [none, rope, alibi]
seeds: [0, 1, 2, 3, 4, 5]
cost:
  - {lengths: [64, 128], heads: [2], head_dim: [16], metrics: [forward_ms, peak_mib]}
accuracy:
  - {task: registers, train_length: 48, test_lengths: [48, 96, 192]}
"""
HOSTILE = "<script>alert(1)</script> | a\n| b \x1b[31m"
Make = Callable[..., list[Record]]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("suites", "few.yaml")
    path.parent.mkdir()
    path.write_text(FEW, encoding="utf-8")
    return tmp_path


@pytest.fixture
def make(make_record: Callable[..., Record]) -> Make:
    """All records of the small suite on one machine, each time in five processes."""

    def made(machine: str = "one", *, cpu: str = "", run: str = "run-1", **changes: Any) -> list[Record]:
        found = []
        for cell in expand(parse(FEW, "few.yaml")):
            for process in range(5 if cell.metric == "forward_ms" else 1):
                block = f"{run} {process} {cell.without('encoding') if cell.kind == 'cost' else cell.id}"
                one = make_record(cell, suite="few", run=f"{machine} {run}", block_run=block, **changes)
                place = one.environment.model_copy(update={"machine": machine, "cpu": cpu or machine, "dirty": False})
                found.append(one.model_copy(update={"environment": place}))
        return found

    return made


def keep(records: Iterable[Record], folder: str = "results") -> list[Record]:
    found = list(records)
    for machine in {one.environment.machine for one in found}:
        with Store(Path(folder)).writing(machine, "few") as writer:
            writer.append([RunStart(run="run", suite="few", at="2024-01-01T00:00:00Z")])
            writer.append(one for one in found if one.environment.machine == machine)
    return found


def boards(*folders: str) -> list[Board]:
    return list(pool({path: name for name in folders or ("results",) for path in Path(name).glob("*/*.jsonl")}).boards)


def trained() -> Board:
    return next(one for one in boards() if one.cell.kind == "accuracy")


def timed() -> list[Board]:
    return [one for one in boards() if one.cell.metric == "forward_ms"]


def page() -> str:
    return Path("reports", "leaderboard.md").read_text(encoding="utf-8")


def is_of(kind: str, encoding: str = "") -> Callable[[Record], bool]:
    return lambda one: one.cell.kind == kind and encoding in ("", one.cell.encoding)


def test_unlike_machines_never_share_a_cost_ranking(make: Make) -> None:
    keep([*make("slow"), *make("fast")])
    slow, fast = sorted(timed(), key=lambda one: one.hardware, reverse=True)
    assert slow.hardware != fast.hardware
    assert not slow.units & fast.units
    assert all(len(one.values) == 5 for board in (slow, fast) for one in board.members)
    assert cli.main(["leaderboard"]) == 0
    cost = page().partition("## Cost")[2].partition("## Failed")[0]
    assert [line for line in cost.splitlines() if line.startswith("### ")] == [
        f"### {name}, torch 2.99.0" for name in ("fast", "slow")
    ]


def test_people_with_like_hardware_are_one_ranking(make: Make) -> None:
    keep([*make("mine", cpu="same"), *make("yours", cpu="same")])
    (board,) = timed()
    assert [len(one.values) for one in board.members] == [10, 10, 10]
    assert {one.sources for one in board.members} == {(1, 2)}


def test_a_seed_on_two_machines_is_a_replicate(make: Make) -> None:
    mine = keep(make("one"))
    yours = make("two")
    changed = [one for one in yours if is_of("accuracy", "rope")(one)]
    keep([worse(one) if one in changed else one for one in yours])
    member = next(one for one in trained().members if one.name == "rope")
    assert sorted(member.values) == [0, 1, 2, 3, 4, 5]
    assert member.records == 12
    own = {one.cell.seed: one.reading.scores[0].normalised for one in filter(is_of("accuracy", "rope"), mine)}  # type: ignore[union-attr]
    assert {seed: own[seed] - score for seed, score in member.values.items()} == pytest.approx(dict.fromkeys(own, 0.03))


def worse(record: Record) -> Record:
    """0.06 less of the normalised score at the training length."""
    assert isinstance(record.reading, AccuracyReading)
    first = record.reading.scores[0]
    lost = first.model_copy(update={"correct": first.correct - round(0.06 * (1 - first.blind) * first.total)})
    scores = (lost, *record.reading.scores[1:])
    return record.model_copy(update={"reading": record.reading.model_copy(update={"scores": scores})})


def test_the_area_is_that_of_a_suites_report(make: Make) -> None:
    records = keep(make())
    for member in trained().members:
        own = {one.cell.seed: area(one) for one in filter(is_of("accuracy", member.name), records)}  # type: ignore[union-attr]
        assert member.areas == pytest.approx(own)


def test_the_latest_run_speaks_for_a_cell(make: Make) -> None:
    keep(make(run="run-1"))
    later = "2024-02-01T00:00:00Z"
    keep(filter(is_of("cost", "rope"), make(run="run-2", at=later, status="failed", fault="oom", message="too little")))
    (board,) = timed()
    assert [(one.name, len(one.values)) for one in board.members] == [("alibi", 5), ("none", 5), ("rope", 0)]
    assert cli.main(["leaderboard"]) == 0
    assert "| rope             |" not in page()
    assert page().count("too little") == 2  # of its time and of its memory


def test_who_did_not_learn_stands_apart(make: Make) -> None:
    keep(make())
    assert cli.main(["leaderboard"]) == 0
    accuracy, _, rest = page().partition("## Did not learn")
    assert "| none " not in accuracy
    assert "| none " in rest.partition("## Cost")[0]
    assert "over 6 trainings" in rest


def test_ranks_are_groups_and_few_seeds_are_underpowered(make: Make) -> None:
    keep(one for one in make() if not is_of("accuracy", "alibi")(one) or one.cell.seed < 3)  # type: ignore[union-attr]
    assert cli.main(["leaderboard"]) == 0
    rows = {line.split("|")[1].strip(): line for line in page().splitlines() if line.startswith("| ")}
    accuracy = page().partition("## Did not learn")[0]
    assert "underpowered<br>3 of 5 seeds" in accuracy
    assert "group 1<br>rank 1 to 2" in accuracy
    assert "3 missing" in accuracy
    assert "missing" in rows["alibi<br>seed 3, 4, 5"]


def test_a_gap_that_no_record_explains_is_missing(make: Make) -> None:
    gone = {("peak_mib", "rope", 128), ("peak_mib", "alibi", 64)}
    keep(one for one in make() if (one.cell.metric, one.cell.encoding, getattr(one.cell, "length", 0)) not in gone)
    assert cli.main(["leaderboard"]) == 0
    (row,) = (line for line in page().partition("## Failed")[2].splitlines() if line.startswith("| rope"))
    assert "never tried at this setting, though at others of the suite" in row


def test_another_version_is_left_out_and_foreign_code_is_named(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    keep(versioned(one, "rope@0") if is_of("accuracy", "rope")(one) else one for one in make())
    keep(versioned(one, "strange@7+0a1b") for one in make("two") if is_of("accuracy", "alibi")(one))
    assert cli.main(["leaderboard"]) == 0
    accuracy = page().partition("## Did not learn")[0]
    assert "| rope " not in accuracy
    assert "| alibi (strange@7+0a1b) " in accuracy
    assert "6 records of rope@0 left out" in page()


def versioned(record: Record, version: str) -> Record:
    cell: Cell = record.cell.model_copy(update={"versions": (version, *record.cell.versions[1:])})
    return record.model_copy(update={"cell": cell, "id": cell.id})


def test_trainings_that_tune_are_no_entries(make: Make) -> None:
    records = make()
    held = next(one for one in records if is_of("accuracy")(one))
    cell = held.cell.model_copy(update={"seed": TUNING_SEED})
    keep([*records, held.model_copy(update={"cell": cell, "id": cell.id})])
    assert trained().units == {0, 1, 2, 3, 4, 5}


def test_a_bundle_counts_once_beside_its_own_folder(make: Make) -> None:
    keep(make())
    bundle(Path("suites", "few.yaml"), Store(Path("results")), Path("few.zip"))
    assert cli.main(["leaderboard", "results", "few.zip", "few.zip"]) == 0
    (both,) = {line for line in page().splitlines() if line.startswith("| rope  ") and " ± " in line}
    assert "6 records from 1 |" in both
    Path("results").rename("elsewhere")
    assert cli.main(["leaderboard", "few.zip"]) == 0
    assert "few.zip, closed division" in page()


def test_a_refused_bundle_is_named_and_left_out(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    keep(make("mine"))
    keep(make("yours"), "theirs")
    bundle(Path("suites", "few.yaml"), Store(Path("theirs")), Path("few.zip"))
    with zipfile.ZipFile("few.zip", "a") as archive:
        archive.writestr("evil\x1b[31m.txt", "")
    assert cli.main(["leaderboard", "results", "few.zip"]) == 1
    out, err = capsys.readouterr()
    assert "few.zip: refused\n  'evil" in err
    assert "\x1b" not in out + err
    assert "yours" not in page()
    assert "Refused bundles" in page()
    assert cli.main(["leaderboard", "few.zip", "--reports", "none"]) == 1
    assert not Path("none").exists()


@pytest.mark.parametrize("place", ["results", "nowhere.zip"])
def test_nothing_to_read_is_wrong_input(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("results").mkdir()
    assert cli.main(["leaderboard", place]) == 2
    assert place in capsys.readouterr().err
    assert not Path("reports").exists()


def test_what_a_record_says_is_shown_inert(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    changes = {"suite": HOSTILE, "status": "failed", "fault": "error", "message": HOSTILE}
    hostile = [one.model_copy(update=changes | {"reading": None}) for one in make("two") if is_of("cost", "rope")(one)]
    odd = {"run": HOSTILE, "cell": make()[0].cell.model_copy(update={"encoding": HOSTILE})}
    keep([*make(), *hostile, *(one.model_copy(update=odd) for one in make("two")[:5])])
    assert cli.main(["leaderboard"]) == 0
    assert not {one for one in capsys.readouterr().out if not one.isprintable()} - {"\n"}
    html = Path("reports", "leaderboard.html").read_text(encoding="utf-8")
    assert "<script>alert" not in html + page()
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 4
    assert "\x1b" not in html + page()
    tables = [part.splitlines() for part in page().split("\n\n") if part.startswith("|")]
    assert {len({line.count("|") - line.count("\\|") for line in table}) for table in tables} == {1}


def test_the_same_records_give_the_same_bytes(make: Make) -> None:
    keep([*make("one"), *make("two", cpu="one")])
    found = set()
    for name in ("first", "second"):
        assert cli.main(["leaderboard", "--reports", name]) == 0
        found.add((Path(name, "leaderboard.md").read_bytes(), Path(name, "leaderboard.html").read_bytes()))
    assert len(found) == 1


@pytest.mark.parametrize(("command", "spared"), [("report", "duckdb"), ("leaderboard", "torch")])
def test_a_command_loads_what_it_needs(command: str, spared: str, make: Make) -> None:
    keep(make())
    code = f"import sys; from grape_bench.cli import main; sys.exit(main(['{command}']) or '{spared}' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": str(HOME)}, check=True)


def read_text(record: Record, text: str, nats: float) -> Record:
    """The same as one of a language model on a text, with this loss at every length."""
    if not isinstance(record.reading, AccuracyReading):
        return record
    losses = {"nats": nats * 1000, "blind_nats": 3.0}
    scores = tuple(one.model_copy(update=losses) for one in record.reading.scores)
    return record.model_copy(update={"reading": record.reading.model_copy(update={"scores": scores, "text_sha": text})})


def test_losses_on_two_texts_have_two_tables(make: Make) -> None:
    keep((read_text(one, "aaaa", 1.5) for one in make()), "one")
    keep((read_text(one, "bbbb", 1.8) for one in make("two")), "two")
    found = [one for one in boards("one", "two") if one.cell.kind == "accuracy"]
    assert sorted(one.part for one in found) == ["aaaa", "bbbb"]
    (first, second) = sorted(found, key=lambda one: one.part)
    for board, score in ((first, 0.5), (second, 0.4)):
        for member in board.members:
            assert list(member.values.values()) == pytest.approx([score] * 6)
            assert list(member.areas.values()) == pytest.approx([score] * 6)
            assert member.learned(board.bar(0.75)) == frozenset(range(6))
