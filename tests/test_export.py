"""Records as a flat table."""

import csv
import io

from grape_bench.cell import AccuracyCell, CostCell
from grape_bench.environment import Environment
from grape_bench.export import columns, csv_text, rows
from grape_bench.record import AccuracyReading, MemoryReading, Record, TimeReading
from grape_bench.score import Score

PLACE = Environment(
    machine="toy", device="cpu", cpu="toy", cores=2, memory_gib=4, torch="2.11", python="3.11", system="X", threads=1
)
COST = CostCell(metric="forward_ms", encoding="rope + t5", length=8, versions=("rope@1", "t5@1"))
TRAINING = AccuracyCell(
    task="registers", encoding="rope", seed=1, train_length=8, test_lengths=(8, 16), model={"width": 32}
)


def record(cell: CostCell | AccuracyCell, reading: object, **changes: object) -> Record:
    shared = {"id": cell.id, "suite": "quick", "run": "r1", "block_run": "b1", "at": "2025-01-01T00:00:00Z"}
    return Record.model_validate(
        {**shared, "cell": cell, "status": "ok", "reading": reading, "environment": PLACE, **changes}
    )


def table(*records: Record) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(csv_text(records))))


def test_a_time_has_a_row_for_each_sample() -> None:
    found = table(
        record(COST, TimeReading(samples_ms=(1.5, 2), wall_ms=(3, 4.25), warmup_ms=(9,), clock="perf_counter"))
    )
    assert [(row["sample"], row["sample_ms"], row["sample_wall_ms"]) for row in found] == [
        ("0", "1.5", "3.0"),
        ("1", "2.0", "4.25"),
    ]
    assert {(row["encoding"], row["length"], row["versions"], row["clock"]) for row in found} == {
        ("rope + t5", "8", "rope@1 t5@1", "perf_counter")
    }


def test_an_accuracy_has_a_row_for_each_score() -> None:
    scores = tuple(
        Score(length=length, group=group, correct=3, total=4, blind=0.5, chance=0.25)
        for length in (8, 16)
        for group in ("recall", "order")
    )
    reading = AccuracyReading(
        headline="recall", scores=scores, curve=(), lr=0.5, data_sha="ab", parameters=7, train_s=1, train_cpu_s=1
    )
    found = table(record(TRAINING, reading))
    assert [(row["score_length"], row["score_group"]) for row in found] == [
        ("8", "recall"),
        ("8", "order"),
        ("16", "recall"),
        ("16", "order"),
    ]
    assert {(row["accuracy"], row["normalised"], row["model_width"], row["training_steps"]) for row in found} == {
        ("0.75", "0.5", "32", "1000")
    }
    assert found[0]["test_lengths"] == "8 16"


def test_memory_has_one_row() -> None:
    [row] = table(record(COST, MemoryReading(peak_mib=1.25)))
    assert (row["peak_mib"], row["resident_mib"], row["sample_ms"]) == ("1.25", "", "")


def test_a_skip_has_one_row_with_its_sentence() -> None:
    message = 'a, "b"\nc'
    [row] = table(record(COST, None, status="skipped", message=message))
    assert (row["status"], row["message"], row["sample_ms"]) == ("skipped", message, "")


def test_every_row_fits_the_columns() -> None:
    made = list(rows([record(COST, MemoryReading(peak_mib=1)), record(TRAINING, None, status="failed", fault="oom")]))
    assert all(set(row) <= set(columns()) for row in made)
    assert len(set(columns())) == len(columns())
    assert {"environment_torch", "environment_threads", "environment_machine", "model_width", "training_lr"} <= set(
        columns()
    )


def test_no_records_are_a_header_alone() -> None:
    assert csv_text([]) == ",".join(columns()) + "\n"
