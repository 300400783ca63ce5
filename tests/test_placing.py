"""Which block goes where, on places that are made up."""

from collections.abc import Sequence
from itertools import count

import pytest

from grape_bench.cell import AccuracyCell, Block, CostCell
from grape_bench.environment import Environment
from grape_bench.placing import Job, Kind, Place, place_next, room

COST = Block((CostCell(metric="forward_ms", length=16, encoding="rope"),))
TRAINING = Block((AccuracyCell(task="registers", train_length=16, test_lengths=(16,), seed=0, encoding="rope"),))
OLD, NEW = "NVIDIA A100", "NVIDIA H200"


@pytest.fixture
def box(environment: Environment) -> dict[str, Place]:
    """Two old GPUs and a new one, each for two trainings."""
    devices = {"0": OLD, "1": OLD, "2": NEW}
    at = {name: environment.model_copy(update={"machine": one, "device": one}) for name, one in devices.items()}
    return {name: Place(name, at[name], slots=2) for name in devices}


def filled(jobs: Sequence[Job], places: Sequence[Place]) -> list[str]:
    """Where jobs go that start together and do not end, job by job; `-` where one must wait."""
    left, running, found = list(enumerate(jobs)), list[tuple[Place, Block]](), ["-"] * len(jobs)
    while (chosen := place_next([job for _, job in left], places, running, lambda job: True)) is not None:
        index, place = chosen
        at, job = left.pop(index)
        running.append((place, job.block))
        found[at] = place.name
    return found


def test_a_cost_block_has_a_device_to_itself(box: dict[str, Place]) -> None:
    assert filled([Job(COST)] * 4, list(box.values())) == ["0", "1", "2", "-"]


def test_trainings_share_devices_and_spread_over_them(box: dict[str, Place]) -> None:
    assert filled([Job(TRAINING)] * 7, list(box.values())) == ["0", "1", "2", "0", "1", "2", "-"]


def test_no_training_joins_a_cost_block_and_no_cost_block_a_training(box: dict[str, Place]) -> None:
    two = [box["0"], box["1"]]
    assert filled([Job(COST), Job(TRAINING), Job(TRAINING), Job(TRAINING)], two) == ["0", "1", "1", "-"]
    assert filled([Job(TRAINING), Job(TRAINING), Job(COST)], two) == ["0", "1", "-"]


def test_one_device_is_either_for_one_cost_block_or_for_trainings(box: dict[str, Place]) -> None:
    assert filled([Job(COST), Job(TRAINING)], [box["0"]]) == ["0", "-"]
    assert filled([Job(TRAINING), Job(COST), Job(TRAINING)], [box["0"]]) == ["0", "-", "-"], "it comes to its turn"


def test_a_cost_of_one_kind_of_device_is_measured_on_no_other(box: dict[str, Place]) -> None:
    new, old = box["2"].kind, box["0"].kind
    assert new != old == box["1"].kind
    assert filled([Job(COST, new), Job(COST, new), Job(COST, old)], list(box.values())) == ["2", "-", "0"]


def test_a_block_that_waits_for_one_kind_leaves_the_other_to_those_behind_it(box: dict[str, Place]) -> None:
    new = box["2"].kind
    jobs = [Job(TRAINING), Job(TRAINING), Job(TRAINING), Job(COST, new), Job(TRAINING)]
    assert filled(jobs, list(box.values())) == ["0", "1", "2", "-", "0"]


def test_other_software_is_another_kind(environment: Environment) -> None:
    def kind(**changes: object) -> Kind:
        return Place("0", environment.model_copy(update=changes), slots=1).kind

    assert kind() != kind(driver="570.1")
    assert kind() == kind(load=3.0)


def test_a_job_that_is_not_ready_is_passed_over(box: dict[str, Place]) -> None:
    first, second = Job(TRAINING, losses=1), Job(TRAINING)
    chosen = place_next([first, second], [box["0"]], [], lambda job: job is second)
    assert chosen == (1, box["0"])


def test_a_job_of_a_kind_that_is_gone_waits_and_holds_up_nobody(box: dict[str, Place]) -> None:
    new = box["2"].kind
    assert filled([Job(COST, new), Job(COST)], [box["0"]]) == ["-", "0"]


def test_a_long_queue_behind_a_full_box_is_not_read() -> None:
    seen = count()
    queue = (Job(TRAINING, losses=next(seen)) for _ in range(1_000_000))
    assert place_next(queue, [], [], lambda job: True) is None
    assert next(seen) <= 1


def test_room_counts_trainings_and_devices(box: dict[str, Place]) -> None:
    assert room(list(box.values())) == (6, 3)
