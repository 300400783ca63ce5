"""What a run has to do, from records of several machines that are made up."""

from collections.abc import Callable

import pytest

from grape_bench.agenda import agenda
from grape_bench.cell import AccuracyCell, Block, CostCell
from grape_bench.environment import Environment
from grape_bench.placing import Place
from grape_bench.record import Record, RunStart
from grape_bench.tuning import candidates

Make = Callable[..., Record]
TRAINING = AccuracyCell(task="registers", train_length=64, test_lengths=(64,), seed=0, encoding="rope")
TUNED = TRAINING.model_copy(update={"tune": (1e-3, 3e-3)})
PEAK = CostCell(metric="peak_mib", length=64, encoding="rope")
FRESH = RunStart(run="run-2", suite="fabricated", at="2024-01-02T00:00:00Z", fresh=True)


@pytest.fixture
def places(environment: Environment) -> list[Place]:
    names = ("old-gpu", "new-gpu")
    here = [environment.model_copy(update={"machine": one, "device": one}) for one in names]
    return [Place(at.machine, at, slots=1) for at in here]


@pytest.mark.parametrize("machine", ["old-gpu", "new-gpu"])
def test_a_training_of_a_fresh_run_counts_on_whichever_machine_it_was(
    make_record: Make, places: list[Place], machine: str
) -> None:
    """The run has its first line in the files of both; neither voids what the other has measured since."""
    lines = {one.name: [FRESH] for one in places}
    lines[machine].append(make_record(TRAINING, run="run-2", at=FRESH.at))
    assert agenda([Block((TRAINING,))], lines, places, processes=1).jobs == ()


def test_a_training_from_before_a_fresh_run_is_void_on_every_machine(make_record: Make, places: list[Place]) -> None:
    old = make_record(TRAINING, at="2024-01-01T00:00:00Z")
    left = agenda([Block((TRAINING,))], {"old-gpu": [old], "new-gpu": [FRESH]}, places, processes=1)
    assert [job.block.cells for job in left.jobs] == [(TRAINING,)]
    assert (left.records, left.standing) == ((old,), ())


def test_a_fresh_run_of_one_machine_leaves_the_costs_of_another(make_record: Make, places: list[Place]) -> None:
    old = {one.name: make_record(PEAK, environment=one.environment, at="2024-01-01T00:00:00Z") for one in places}
    lines = {"old-gpu": [old["old-gpu"]], "new-gpu": [old["new-gpu"], FRESH]}
    left = agenda([Block((PEAK,))], lines, places, processes=1)
    assert [job.kind for job in left.jobs] == [places[1].kind]


def test_an_interrupted_fresh_run_is_tuned_anew_by_the_next(make_record: Make, places: list[Place]) -> None:
    """A rate that was chosen before it would mix old trainings with new ones."""
    old = [make_record(one, at="2024-01-01T00:00:00Z") for one in (*candidates(TUNED), TUNED)]
    first = make_record(candidates(TUNED)[0], run="run-2", at="2024-01-02T00:01:00Z")
    lines = {"old-gpu": [*old, FRESH, first], "new-gpu": []}
    left = agenda([Block((TUNED,))], lines, places, processes=1)
    assert [job.block.cells[0] for job in left.jobs] == [candidates(TUNED)[1], TUNED]
    assert left.standing == (first,)


@pytest.mark.parametrize(
    ("how", "jobs", "failed"), [({}, 0, 1), ({"retry_failed": True}, 1, 0), ({"fresh": True}, 1, 0)]
)
def test_a_failure_is_told_or_tried_again(
    make_record: Make, places: list[Place], how: dict[str, bool], jobs: int, failed: int
) -> None:
    lines = {"old-gpu": [make_record(TRAINING, status="failed", fault="nan", message="no")], "new-gpu": []}
    found = agenda([Block((TRAINING,))], lines, places, processes=1, **how)
    assert (len(found.jobs), found.failed, found.known) == (jobs, failed, 1 - jobs)
