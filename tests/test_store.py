"""Records on disk: whole or not at all, one writer, and errors that name file and line."""

import os
from pathlib import Path

import pytest

from grape_bench.cell import AccuracyCell, CostCell
from grape_bench.environment import Environment
from grape_bench.errors import UserError
from grape_bench.record import AccuracyReading, CurvePoint, MemoryReading, Record, RunStart, TimeReading
from grape_bench.score import Score
from grape_bench.store import DiskError, Store

PLACE = Environment(
    machine="toy-2-cores",
    device="cpu",
    cpu="toy",
    cores=2,
    memory_gib=4,
    torch="2.11",
    python="3.11",
    system="X",
    threads=1,
)


def record(cell: CostCell | AccuracyCell, reading: object = None, **changes: object) -> Record:
    shared = {"id": cell.id, "suite": "quick", "run": "r1", "block_run": "b1", "at": "2025-01-01T00:00:00Z"}
    return Record.model_validate(
        {**shared, "cell": cell, "status": "ok", "reading": reading, "environment": PLACE, **changes}
    )


def cost(length: int = 8) -> Record:
    cell = CostCell(metric="forward_ms", encoding="rope", length=length)
    return record(cell, TimeReading(samples_ms=(1.5, 2.25), wall_ms=(2.0, 3.0), clock="process_time"))


def training() -> Record:
    cell = AccuracyCell(task="registers", encoding="größe", seed=1, train_length=8, test_lengths=(8,))
    score = Score(length=8, group="recall", correct=3, total=4, blind=0.5, chance=0.25)
    curve = (CurvePoint(step=1, loss=0.1 + 0.2, accuracy={"recall": 1 / 3}),)
    made = AccuracyReading(
        headline="recall", scores=(score,), curve=curve, lr=0.5, data_sha="ab", parameters=7, train_s=1, train_cpu_s=1
    )
    return record(cell, made)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "results")


def write(store: Store, *lines: Record | RunStart, suite: str = "quick", machine: str = "toy") -> Path:
    with store.writing(machine, suite) as writer:
        writer.append(lines)
    return store.path(machine, suite)


def test_what_is_written_is_read(store: Store) -> None:
    start = RunStart(run="r1", suite="quick", at="2025-01-01T00:00:00Z", only=("length=8",))
    memory = record(CostCell(metric="peak_mib", encoding="t5", length=8), MemoryReading(peak_mib=1.25))
    skip = record(CostCell(metric="forward_ms", encoding="t5", length=8), status="skipped", message="no")
    lines = (start, cost(), training(), memory, skip)
    path = write(store, *lines)
    assert tuple(store.lines("quick")) == lines
    assert tuple(store.records("quick")) == lines[1:]
    assert path.read_bytes().count(b"\n") == 5


def test_appending_goes_on_where_the_last_run_stopped(store: Store) -> None:
    write(store, cost(8))
    write(store, cost(9), cost(10))
    assert [one.cell.length for one in store.records("quick") if one.cell.kind == "cost"] == [8, 9, 10]


def test_a_suite_without_records_is_empty(store: Store) -> None:
    assert (store.records("quick"), store.suites()) == ([], [])


def test_suites_and_machines_are_kept_apart(store: Store) -> None:
    for suite, machine in (("quick", "a"), ("quick", "b"), ("quick.v2", "b"), ("q[u]ick", "b")):
        write(store, cost(), suite=suite, machine=machine)
    assert store.suites() == ["q[u]ick", "quick", "quick.v2"]
    assert [len(store.records(*one)) for one in (("quick",), ("quick", "b"), ("q[u]ick",))] == [2, 1, 1]


def test_an_append_is_on_the_disk_when_it_returns(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda number: synced.append(os.fstat(number).st_size))
    path = write(store, cost())
    assert synced == [path.stat().st_size]
    assert synced[0] > 0


@pytest.mark.parametrize("kept", [1, 20, -1])
def test_a_last_line_cut_short_is_passed_over_and_then_replaced(store: Store, kept: int) -> None:
    path = write(store, cost(8), cost(9))
    first, second, _ = path.read_bytes().split(b"\n")
    path.write_bytes(first + b"\n" + (second[:kept] if kept > 0 else second))
    assert store.records("quick") == [cost(8)]
    write(store, cost(10))
    assert store.records("quick") == [cost(8), cost(10)]


@pytest.mark.parametrize(
    ("broken", "reason"), [(b"{", "JSON"), (b"", "JSON"), (b'{"kind": "record"}', "record"), (b'{"kind": "x"}', "kind")]
)
def test_a_broken_line_in_the_middle_is_named(store: Store, broken: bytes, reason: str) -> None:
    path = write(store, cost(8), cost(9), cost(10))
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0], broken, *lines[2:]]))
    with pytest.raises(UserError, match=reason) as caught:
        store.records("quick")
    assert str(caught.value).startswith(f"{path}:2: ")


def test_a_second_writer_is_refused_until_the_first_is_done(store: Store) -> None:
    with store.writing("toy", "quick") as first:
        with pytest.raises(UserError, match="another run writes"), store.writing("toy", "quick"):
            pass
        with store.writing("toy", "other") as other:
            other.append([cost()])
        first.append([cost()])
    write(store, cost())
    assert len(store.records("quick")) == 2


def test_a_writer_that_fails_lets_the_next_one_in(store: Store) -> None:
    with pytest.raises(RuntimeError), store.writing("toy", "quick"):
        raise RuntimeError
    write(store, cost())


def test_a_folder_that_cannot_be_made_is_a_users_error(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file")
    with pytest.raises(UserError, match="cannot be written"), Store(tmp_path / "results").writing("toy", "quick"):
        pass


def test_a_writer_that_was_refused_holds_nothing(store: Store) -> None:
    path = store.path("toy", "quick")
    path.mkdir(parents=True)
    with pytest.raises(UserError, match=r"quick\.jsonl is a folder") as refused, store.writing("toy", "quick"):
        pass
    path.rmdir()
    write(store, cost())
    assert len(store.records("quick")) == 1, refused


def test_a_block_that_does_not_fit_on_the_disk_leaves_no_trace(tmp_path: Path) -> None:
    """A file may not grow beyond the size of two records and a half."""
    resource = pytest.importorskip("resource")
    one = record(CostCell(metric="peak_mib", encoding="rope", length=8), MemoryReading(peak_mib=2))
    with Store(tmp_path).writing("toy", "full") as writer:
        writer.append([one])
        whole = writer.path.read_bytes()
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) * 5 // 2, before[1]))
        try:
            with pytest.raises(DiskError, match=r"full\.jsonl cannot be written: File too large"):
                writer.append([one, one])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert writer.path.read_bytes() == whole
        writer.append([one])
    assert Store(tmp_path).records("full") == [one, one]
