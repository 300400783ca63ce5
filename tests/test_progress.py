"""What a run shows where its output is no terminal: a line for each block that ends."""

from collections.abc import Callable

import pytest

from grape_bench.cell import AccuracyCell, Block, CostCell
from grape_bench.environment import Environment
from grape_bench.placing import Place
from grape_bench.progress import Progress, title
from grape_bench.record import Record
from grape_bench.worker import Finished, Result

TIMED = Block(tuple(CostCell(metric="forward_ms", length=64, encoding=one) for one in ("none", "rope", "t5")), 0)
TRAINING = Block((AccuracyCell(task="registers", train_length=64, test_lengths=(64, 128), seed=3, encoding="rope"),))


@pytest.fixture
def progress(environment: Environment) -> Progress:
    return Progress("tiny", [TIMED, TRAINING], [], [Place("cpu", environment, slots=2)])


def test_a_block_of_times_counts_its_members_and_no_control(
    progress: Progress, make_record: Callable[..., Record], capsys: pytest.CaptureFixture[str]
) -> None:
    results = [Result(cell, "ok", make_record(cell).reading) for cell in TIMED.cells]
    results[2] = Result(TIMED.cells[2], "failed", fault="oom", message="9 GiB asked for")
    control = Result(TIMED.cells[0], "ok", results[0].reading, role="control")
    with progress:
        progress.started(1, TIMED)
        progress.finished(1, Finished((*results, control), make_record(TIMED.cells[0]).environment, 12.0))
    said = capsys.readouterr().err
    assert said == "[1/2] forward_ms attention 64, 8 heads, float32, sdpa, 3 encodings: 2 of 3 ok (12 s)\n"


def test_a_training_tells_its_scores_and_how_long_the_rest_takes(
    progress: Progress, make_record: Callable[..., Record], capsys: pytest.CaptureFixture[str]
) -> None:
    record = make_record(TRAINING.cells[0], seconds=80.0)
    with progress:
        progress.started(1, TRAINING)
        progress.recorded([record, *(make_record(cell, block_run="times", seconds=30.0) for cell in TIMED.cells)])
        progress.finished(1, Finished((Result(record.cell, "ok", record.reading),), record.environment, 80.0))
    said = capsys.readouterr().err
    first, second = (one.accuracy for one in record.reading.scores if one.group == "recall")
    assert said == f"[1/2] {title(TRAINING)}: recall 64: {first:.2f}, 128: {second:.2f} (80 s), about 30 s left\n"
    assert title(TRAINING) == "registers 64, rope, seed 3"


def test_a_death_is_told_with_its_reason_and_a_loss_as_no_end(
    progress: Progress, make_record: Callable[..., Record], capsys: pytest.CaptureFixture[str]
) -> None:
    failed = make_record(TIMED.cells[1], status="failed", fault="killed", message="signal SIGKILL")
    with progress:
        progress.started(1, TIMED)
        progress.lost(1, "the node is gone")
        progress.started(2, TIMED)
        progress.died(2, failed)
    lost, died = capsys.readouterr().err.splitlines()
    assert lost == f"{title(TIMED)}: the node is gone; tried again"
    assert died == f"[1/2] {title(TIMED)}: rope failed, killed: signal SIGKILL"
