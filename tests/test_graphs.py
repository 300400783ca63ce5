"""Recorded steps: what is recorded and when, that trainings come out the same, and what runs plainly and why."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from grape_bench import graphs
from grape_bench.backends import noting
from grape_bench.cell import AccuracyCell, ModelOptions, TrainingOptions
from grape_bench.graphs import PAYS, Recorded, sent, undecided
from grape_bench.optimizer import make_optimizer
from grape_bench.tasks import Batch, load
from grape_bench.trainer import Trainer, steps_by_length, training_batch
from grape_bench.training import make_model


def cell(encoding: str = "rope + t5", **recipe: Any) -> AccuracyCell:
    return AccuracyCell(
        task="short_text(bystanders=1)",
        encoding=encoding,
        seed=0,
        train_length=32,
        test_lengths=(32,),
        model=ModelOptions(width=16, layers=2, heads=2),
        training=TrainingOptions(**({"steps": 12, "batch": 4, "warmup": 2, "test_examples": 12} | recipe)),
    )


def batch(length: int, fill: int = 0) -> Batch:
    return Batch(torch.full((2, length), fill), torch.zeros(2, 3, dtype=torch.long), torch.zeros(3, dtype=torch.long))


class Again:
    """Records as CUDA does, as far as Python can tell: recording runs nothing, and a launch runs the same code."""

    def __init__(self) -> None:
        self.recorded = 0

    def __call__(self, step: Callable[[], None]) -> Callable[[], None]:
        self.recorded += 1
        return step


def test_a_length_is_recorded_at_its_second_step_and_then_launched() -> None:
    seen: list[int] = []
    record = Again()
    steps = Recorded(lambda one: seen.append(int(one.tokens[0, 0])), {8: PAYS}, record)
    counts = []
    for fill in range(PAYS):
        steps(batch(8, fill))
        counts.append(record.recorded)
    assert seen == list(range(PAYS)), "each step sees its own data, once"
    assert counts == [0] + [1] * (PAYS - 1)


def test_every_launch_reads_the_tensors_that_were_recorded() -> None:
    places: list[int] = []
    steps = Recorded(lambda one: places.append(one.tokens.data_ptr()), {8: PAYS}, Again())
    given = [batch(8, fill) for fill in range(5)]
    for one in given:
        steps(one)
    assert places[0] == given[0].tokens.data_ptr(), "the first step runs plainly"
    assert len(set(places[1:])) == 1
    assert places[1] not in {one.tokens.data_ptr() for one in given}


def test_a_length_that_comes_too_seldom_is_never_recorded() -> None:
    record = Again()
    steps = Recorded(lambda one: None, {8: PAYS - 1, 9: PAYS}, record)
    for length in (8, 9, 8, 8):
        steps(batch(length))
    assert record.recorded == 0
    steps(batch(9))
    assert record.recorded == 1


def test_a_step_that_cannot_be_recorded_runs_plainly_and_says_why() -> None:
    seen: list[int] = []

    def record(step: Callable[[], None]) -> Callable[[], None]:
        raise RuntimeError("operation not permitted when stream is capturing\nmore of it")

    with noting() as notes:
        steps = Recorded(lambda one: seen.append(int(one.tokens[0, 0])), {8: PAYS}, record)
        for fill in range(PAYS):
            steps(batch(8, fill))
    assert seen == list(range(PAYS))
    assert notes == ["steps run without a CUDA graph: operation not permitted when stream is capturing"]


def test_a_mistake_of_ours_is_not_taken_for_a_wait() -> None:
    def record(step: Callable[[], None]) -> Callable[[], None]:
        raise TypeError("a mistake")

    steps = Recorded(lambda one: None, {8: PAYS}, record)
    steps(batch(8))
    with pytest.raises(TypeError, match="a mistake"):
        steps(batch(8))


def state(trainer: Trainer) -> list[Any]:
    return [trainer.curve, *(one.tolist() for one in trainer.model.parameters())]


@pytest.mark.parametrize("recipe", [{}, {"shortest": 30, "steps": 40}])
def test_recorded_steps_train_to_the_same_weights(recipe: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    one = cell(**recipe)
    task, record = load(one.task), Again()
    plain, recorded = (Trainer(make_model(one, task), task, one, "cpu") for _ in range(2))
    monkeypatch.setattr(recorded, "_on_device", lambda: Recorded(recorded._advance, steps_by_length(one), record))
    plain.run(lambda text: None)
    recorded.run(lambda text: None)
    assert record.recorded >= 1
    assert state(recorded) == state(plain)


def test_rates_on_a_device_follow_the_schedule_as_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """AdamW of a GPU, one fused call whose rates are tensors, also runs on a CPU, to nearly the same weights."""
    one = cell()
    task = load(one.task)
    plain, fused = (Trainer(make_model(one, task), task, one, "cpu") for _ in range(2))
    rows = [
        {**group, "lr": torch.tensor(0.0), "fused": True, "foreach": None} for group in fused.optimizer.param_groups
    ]
    fused.optimizer = torch.optim.AdamW(rows, fused=True, capturable=True)
    plain.run(lambda text: None)
    fused.run(lambda text: None)
    rates = [float(group["lr"]) for group in fused.optimizer.param_groups]
    assert rates == pytest.approx([group["lr"] for group in plain.optimizer.param_groups], rel=1e-6)
    for ours, theirs in zip(fused.model.parameters(), plain.model.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


def test_a_cpu_keeps_the_optimizer_it_had() -> None:
    one = cell()
    optimizer = make_optimizer(make_model(one, load(one.task)), one.training)
    assert not optimizer.defaults["capturable"]
    assert not optimizer.defaults["fused"]
    assert all(isinstance(group["lr"], float) for group in optimizer.param_groups)


def test_lengths_are_counted_as_they_are_drawn() -> None:
    one = cell(shortest=24, steps=60)
    task = load(one.task)
    drawn = [training_batch(task, one, step).tokens.shape[1] for step in range(60)]
    assert {length: drawn.count(length) for length in drawn} == steps_by_length(one)
    assert steps_by_length(cell()) == {32: 12}


@pytest.mark.parametrize("encoding", ["none", "rope + t5", "dynamic_ntk", "alibi"])
def test_what_decides_nothing_may_be_recorded(encoding: str) -> None:
    one = cell(encoding)
    assert undecided(make_model(one, load(one.task)), one) == ""


@pytest.mark.parametrize(
    ("encoding", "name"),
    [("cape(rope)", "cape"), ("randomized(rope)", "randomized"), ("t5 + cape(rope)", "cape")],
)
def test_an_encoding_that_draws_in_each_step_is_not_recorded(encoding: str, name: str) -> None:
    one = cell(encoding)
    assert undecided(make_model(one, load(one.task)), one) == f"{name} draws anew for each step"


def test_float16_is_not_recorded() -> None:
    one = cell("rope").model_copy(update={"dtype": "float16"})
    assert "scales its loss" in undecided(make_model(one, load(one.task)), one)


def test_a_batch_for_the_host_is_sent_nowhere() -> None:
    one = batch(8)
    assert sent(one, "cpu") is one


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize("encoding", ["none", "rope", "alibi", "t5", "rope + clamp", "rope + fourier", "sinusoidal"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_graphs_train_as_plain_steps_do_on_the_device(
    encoding: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = cell(encoding, steps=40).model_copy(update={"dtype": dtype})
    task = load(one.task)
    losses = []
    for pays in (graphs.PAYS, 10**9):
        monkeypatch.setattr(graphs, "PAYS", pays)
        trainer = Trainer(make_model(one, task).to("cuda"), task, one, "cuda")
        with noting() as notes:
            trainer.run(lambda text: None)
        losses.append(trainer.curve[-1].loss)
        assert ("steps run from CUDA graphs" in notes) == (pays < 40), notes
    assert losses[0] == pytest.approx(losses[1], rel=1e-3 if dtype == "float32" else 3e-2)
    assert steps_by_length(one) == {32: 40}
