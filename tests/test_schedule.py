"""What is left to measure, from records made up for these tests."""

from collections.abc import Callable, Iterable

import pytest

from grape_bench.cell import AccuracyCell, Block, CostCell
from grape_bench.environment import Environment
from grape_bench.record import Record, RunStart
from grape_bench.schedule import Line, earlier_failures, estimate, pending, processes_on, standing, words
from grape_bench.suite import group

Make = Callable[..., Record]
ENCODINGS = ("none", "rope", "alibi")
TIMED = tuple(CostCell(metric="forward_ms", length=64, encoding=one) for one in ENCODINGS)
LONGER = tuple(CostCell(metric="forward_ms", length=128, encoding=one) for one in ENCODINGS)
PEAKS = tuple(CostCell(metric="peak_mib", length=64, encoding=one) for one in ENCODINGS)
TRAININGS = tuple(
    AccuracyCell(task="registers", train_length=64, test_lengths=(64,), seed=seed, encoding=one)
    for seed in (0, 1)
    for one in ENCODINGS
)
BLOCKS = group((*TIMED, *PEAKS, *TRAININGS), "none")


@pytest.fixture
def todo(environment: Environment) -> Callable[..., list[list[str]]]:
    """Encodings of each block that is left."""

    def left(
        lines: Iterable[Line], *, blocks: list[Block] = BLOCKS, processes: int = 1, retry: bool = False, **here: object
    ) -> list[list[str]]:
        where = environment.model_copy(update=here)
        found = pending(blocks, standing(blocks, lines), where, processes=processes, retry_failed=retry)
        return [[cell.encoding for cell in block.cells] for block in found]

    return left


def start(*, fresh: bool = False, only: tuple[str, ...] = ()) -> RunStart:
    return RunStart(run="run-2", suite="fabricated", at="2024-01-02T00:00:00Z", fresh=fresh, only=only)


def test_without_records_everything_is_left(todo: Callable[..., list[list[str]]]) -> None:
    alone = [[one] for one in ENCODINGS]
    assert todo([]) == [list(ENCODINGS), *alone, *alone, *alone]


def test_nothing_is_left_when_all_is_recorded(make_record: Make, todo: Callable[..., list[list[str]]]) -> None:
    assert todo([make_record(cell) for cell in (*TIMED, *PEAKS, *TRAININGS)]) == []


def test_a_missing_member_brings_its_baseline(make_record: Make, todo: Callable[..., list[list[str]]]) -> None:
    known = [make_record(cell) for cell in (*TIMED[:2], *PEAKS, *TRAININGS)]
    assert todo(known) == [["none", "alibi"]]


def test_a_missing_baseline_is_measured_alone(make_record: Make, todo: Callable[..., list[list[str]]]) -> None:
    assert todo([make_record(cell) for cell in TIMED[1:]], blocks=BLOCKS[:1]) == [["none"]]


def test_the_block_keeps_its_baseline_by_place(make_record: Make, environment: Environment) -> None:
    (block,) = pending(
        group(TIMED[::-1], "none"), [make_record(TIMED[1])], environment, processes=1, retry_failed=False
    )
    assert [cell.encoding for cell in block.cells] == ["alibi", "none"]
    assert block.baseline == 1


def test_a_peak_needs_no_baseline_beside_it(make_record: Make, todo: Callable[..., list[list[str]]]) -> None:
    known = [make_record(cell) for cell in (*TIMED, *PEAKS[:2], *TRAININGS)]
    assert todo(known) == [["alibi"]]


@pytest.mark.parametrize("status", ["skipped", "failed"])
def test_what_was_refused_counts_as_done(make_record: Make, todo: Callable[..., list[list[str]]], status: str) -> None:
    fault = {"fault": "oom"} if status == "failed" else {}
    known = [make_record(cell) for cell in (*TIMED[:2], *PEAKS, *TRAININGS)]
    refused = make_record(TIMED[2], status=status, message="for a reason", **fault)
    assert todo([*known, refused]) == []


def test_failed_cells_are_tried_again_when_asked(make_record: Make, todo: Callable[..., list[list[str]]]) -> None:
    lines = [make_record(cell) for cell in (*PEAKS, *TRAININGS, TIMED[0])]
    lines += [make_record(TIMED[1], status="skipped", message="never")]
    lines += [make_record(TIMED[2], status="failed", fault="timeout", message="slow")]
    assert todo(lines) == []
    assert todo(lines, retry=True) == [["none", "alibi"]]


def test_a_refused_baseline_is_not_brought_along(make_record: Make, todo: Callable[..., list[list[str]]]) -> None:
    lines = [make_record(TIMED[0], status="failed", fault="oom", message="large"), make_record(TIMED[1])]
    assert todo(lines, blocks=BLOCKS[:1]) == [["alibi"]]


def test_a_success_after_a_failure_is_a_success(make_record: Make, todo: Callable[..., list[list[str]]]) -> None:
    failed = make_record(TIMED[1], status="failed", fault="killed", message="by somebody")
    lines = [failed, *(make_record(cell) for cell in TIMED)]
    assert todo(lines, blocks=BLOCKS[:1], retry=True) == []


def test_a_fresh_run_voids_what_is_older(make_record: Make, todo: Callable[..., list[list[str]]]) -> None:
    old = [make_record(cell) for cell in (*TIMED, *PEAKS, *TRAININGS)]
    assert len(todo([*old, start(fresh=True)])) == 1 + 3 + 6
    assert todo([*old, start()]) == []
    newer = [make_record(cell, run="run-2") for cell in (*TIMED, *PEAKS)]
    assert todo([*old, start(fresh=True), *newer]) == [[one] for one in ENCODINGS] * 2


def test_a_fresh_run_voids_refusals_too(make_record: Make, todo: Callable[..., list[list[str]]]) -> None:
    refused = [make_record(cell, status="skipped", message="no") for cell in TIMED]
    assert todo([*refused, start(fresh=True)], blocks=BLOCKS[:1]) == [list(ENCODINGS)]


def test_a_narrowed_fresh_run_voids_what_it_measures_again(
    make_record: Make, todo: Callable[..., list[list[str]]]
) -> None:
    old = [make_record(cell) for cell in (*TIMED, *PEAKS, *TRAININGS)]
    left = todo([*old, start(fresh=True, only=("metric=peak_mib", "encoding=rope"))])
    assert left == [["rope"]]
    # A ratio needs its baseline, so a timed cell comes with it.
    assert todo([*old, start(fresh=True, only=("metric=forward_ms", "encoding=rope"))]) == [["none", "rope"]]


def test_a_filter_that_the_suite_no_longer_knows_voids_nothing(
    make_record: Make, todo: Callable[..., list[list[str]]]
) -> None:
    old = [make_record(cell) for cell in (*TIMED, *PEAKS, *TRAININGS)]
    assert todo([*old, start(fresh=True, only=("encoding=t5",))]) == []


def test_times_are_measured_in_several_processes_and_the_rest_in_one(
    make_record: Make, todo: Callable[..., list[list[str]]]
) -> None:
    rest = [make_record(cell) for cell in (*PEAKS, *TRAININGS)]
    assert todo(rest, processes=3) == [list(ENCODINGS)] * 3
    once = [make_record(cell, block_run="one") for cell in TIMED]
    assert todo([*rest, *once], processes=3) == [list(ENCODINGS)] * 2
    thrice = [make_record(cell, block_run=name) for name in ("one", "two", "three") for cell in TIMED]
    assert todo([*rest, *thrice], processes=3) == []
    ragged = [make_record(TIMED[2], block_run="four")]
    assert todo([*rest, *once, *ragged], processes=2) == [["none", "rope"]]


def test_a_control_is_no_run_of_its_cell(make_record: Make, todo: Callable[..., list[list[str]]]) -> None:
    lines = [make_record(cell, role="control") for cell in TIMED]
    assert todo(lines, blocks=BLOCKS[:1]) == [list(ENCODINGS)]


@pytest.mark.parametrize("here", [{"torch": "2.98.0"}, {"threads": 2}, {"driver": "600.1"}, {"tf32": True}])
def test_elsewhere_cost_is_measured_again_and_accuracy_is_not(
    make_record: Make, todo: Callable[..., list[list[str]]], here: dict[str, object]
) -> None:
    lines = [make_record(cell) for cell in (*TIMED, *PEAKS, *TRAININGS)]
    assert todo(lines, **here) == [list(ENCODINGS), *([one] for one in ENCODINGS)]


def test_a_commit_or_a_busy_machine_makes_no_record_stale(
    make_record: Make, todo: Callable[..., list[list[str]]]
) -> None:
    lines = [make_record(cell) for cell in (*TIMED, *PEAKS, *TRAININGS)]
    assert todo(lines, commit="f" * 40, dirty=False, load=3.5, python="3.12.1") == []


def test_a_new_version_of_an_encoding_is_measured_again(
    make_record: Make, todo: Callable[..., list[list[str]]]
) -> None:
    old, new = (TIMED[1].model_copy(update={"versions": (f"rope@{one}",)}) for one in (1, 2))
    lines = [make_record(TIMED[0]), make_record(old)]
    assert todo(lines, blocks=group([TIMED[0], new], "none")) == [["none", "rope"]]


def test_earlier_failures_are_cells_whose_last_attempt_failed(make_record: Make, environment: Environment) -> None:
    failed = {"status": "failed", "fault": "error", "message": "no"}
    lines = [make_record(TIMED[0], **failed), make_record(TIMED[0])]
    lines += [make_record(TIMED[1]), make_record(TIMED[1], **failed)]
    lines += [make_record(TRAININGS[0], **failed), make_record(LONGER[0], **failed)]
    assert earlier_failures(BLOCKS, lines, environment) == 2
    elsewhere = environment.model_copy(update={"torch": "2.98.0"})
    assert earlier_failures(BLOCKS, lines, elsewhere) == 1


@pytest.mark.parametrize(("only", "failures"), [(("metric=forward_ms", "encoding=rope"), 0), (("metric=peak_mib",), 1)])
def test_a_failure_that_a_fresh_run_voids_is_none_any_more(
    make_record: Make, environment: Environment, only: tuple[str, ...], failures: int
) -> None:
    """Also where that run was interrupted: the next one measures it, and must not count it as failed before."""
    lines = [make_record(TIMED[1], status="failed", fault="error", message="no"), start(fresh=True, only=only)]
    assert earlier_failures(BLOCKS, standing(BLOCKS, lines), environment) == failures


def test_an_estimate_is_the_mean_of_like_blocks(make_record: Make) -> None:
    records = [make_record(cell, block_run="a", seconds=10.0) for cell in TIMED]
    records += [make_record(cell, block_run="b", seconds=20.0) for cell in TIMED]
    assert estimate(group(TIMED, "none"), records, slots=2) == (pytest.approx(15.0), 0)
    # No block of this length is known, so that any length has to do.
    assert estimate(group(LONGER, "none"), records, slots=2) == (pytest.approx(15.0), 0)


def test_trainings_share_their_slots_in_an_estimate(make_record: Make) -> None:
    records = [make_record(cell, block_run=cell.id, seconds=30.0) for cell in TRAININGS]
    assert estimate(group(TRAININGS, None), records, slots=3) == (pytest.approx(6 * 30.0 / 3), 0)


def test_a_training_is_estimated_by_its_own_encoding_first(make_record: Make) -> None:
    records = [make_record(TRAININGS[0], block_run="a", seconds=10.0)]
    records += [make_record(TRAININGS[1], block_run="b", seconds=90.0)]
    assert estimate(group(TRAININGS[3:4], None), records, slots=1) == (pytest.approx(10.0), 0)
    assert estimate(group(TRAININGS[2:3], None), records, slots=1) == (pytest.approx(50.0), 0)


def test_blocks_like_none_on_record_are_counted_apart(make_record: Make) -> None:
    records = [make_record(cell, seconds=10.0) for cell in TIMED]
    took, unknown = estimate(group([*TIMED, *TRAININGS], "none"), records, slots=1)
    assert (took, unknown) == (pytest.approx(10.0), len(TRAININGS))
    assert estimate([], records, slots=1) == (0.0, 0)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 s"), (89, "89 s"), (90, "2 min"), (600, "10 min"), (5400, "1.5 h"), (36_000, "10.0 h")],
)
def test_durations_are_said_as_people_say_them(seconds: float, text: str) -> None:
    assert words(seconds) == text


@pytest.mark.parametrize(("asked", "on_cpu", "on_gpu"), [(1, 1, 3), (3, 3, 3), (5, 5, 5)])
def test_a_gpu_is_measured_in_three_processes_and_more(
    environment: Environment, asked: int, on_cpu: int, on_gpu: int
) -> None:
    assert processes_on(environment.model_copy(update={"device": "cpu"}), asked) == on_cpu
    assert processes_on(environment.model_copy(update={"device": "NVIDIA H200"}), asked) == on_gpu
