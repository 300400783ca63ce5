"""The steps of a training: their batches, their rates, their number formats, and the curve that they leave."""

import math
from typing import Any

import pytest
import torch

from grape_bench.cell import AccuracyCell, ModelOptions, TrainingOptions
from grape_bench.encodings import At, Encoding
from grape_bench.optimizer import learning_rate
from grape_bench.tasks import load
from grape_bench.trainer import NanLossError, Trainer, training_batch
from grape_bench.training import make_model

TASK = "registers(pairs=2, registers=2, writes=2)"


def cell(encoding: str = "rope", *, recipe: dict[str, Any] | None = None, **changes: Any) -> AccuracyCell:
    options = {"steps": 8, "batch": 4, "warmup": 2, "test_examples": 12} | (recipe or {})
    values = {
        "task": TASK,
        "encoding": encoding,
        "seed": 0,
        "train_length": 16,
        "test_lengths": (16, 24),
        "model": ModelOptions(width=16, layers=2, heads=2),
        "training": TrainingOptions(**options),
    }
    return AccuracyCell(**(values | changes))


def trained(one: AccuracyCell) -> Trainer:
    task = load(TASK)
    trainer = Trainer(make_model(one, task), task, one, "cpu")
    trainer.run(lambda text: None)
    return trainer


def test_no_batch_depends_on_the_encoding_or_on_earlier_batches() -> None:
    task = load(TASK)
    for step in (0, 5):
        one, other = (training_batch(task, cell(encoding), step) for encoding in ("none", "learned"))
        assert torch.equal(one.tokens, other.tokens)
        assert torch.equal(one.labels, other.labels)
    assert not torch.equal(training_batch(task, cell(), 0).tokens, training_batch(task, cell(), 1).tokens)


def test_mixed_lengths_are_spread_evenly_over_their_logarithm() -> None:
    task, one = load(TASK), cell(train_length=64, test_lengths=(64,), recipe={"shortest": 8})
    lengths = [training_batch(task, one, step).tokens.shape[1] for step in range(600)]
    assert min(lengths) >= 8
    assert max(lengths) <= 64
    # 8, 16, 32, 64: each doubling is drawn as often, within four standard deviations.
    for low in (8, 16, 32):
        share = sum(low <= length < 2 * low for length in lengths) / 600
        assert share == pytest.approx(1 / 3, abs=4 * math.sqrt(2 / 9 / 600))


def test_even_lengths_are_the_mixed_ones_without_the_odd() -> None:
    task, mixed = load(TASK), cell(train_length=64, test_lengths=(64,), recipe={"shortest": 8})
    even = cell(train_length=64, test_lengths=(64,), recipe={"shortest": 8, "even": True})
    lengths = [[training_batch(task, one, step).tokens.shape[1] for one in (mixed, even)] for step in range(200)]
    assert {length % 2 for _, length in lengths} == {0}
    assert {own - length for own, length in lengths} == {0, 1}
    assert all(own == length for own, length in lengths if own % 2 == 0)


def test_one_length_is_trained_where_no_shortest_is_given() -> None:
    task = load(TASK)
    assert {training_batch(task, cell(), step).tokens.shape for step in range(20)} == {(4, 16)}


def test_each_step_has_the_rate_of_its_schedule() -> None:
    one = cell("t5", recipe={"lr": 0.01, "table_lr": 5.0})
    trainer = trained(one)
    rates = sorted(group["lr"] for group in trainer.optimizer.param_groups)
    last = learning_rate(one.training, 7)
    assert rates == pytest.approx([last, last, 5 * last])


def test_the_curve_ends_at_the_last_step() -> None:
    curve = trained(cell(recipe={"steps": 90})).curve
    assert curve[-1].step == 90
    assert [one.step for one in curve] == sorted({one.step for one in curve})
    assert all(set(one.accuracy) == {"recall", "cmp"} for one in curve)


class Broken(Encoding):
    def embed(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        return x * math.nan

    def bias(self, q: torch.Tensor, features: torch.Tensor | None, at: At) -> None:
        return None


def test_a_loss_that_is_no_number_ends_the_training() -> None:
    one, task = cell("none"), load(TASK)
    model = make_model(one, task)
    model.layers[0].attention.encoding = Broken()  # type: ignore[union-attr]
    with pytest.raises(NanLossError, match="nan at step 1"):
        Trainer(model, task, one, "cpu").run(lambda text: None)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_trains_over_float32_weights(dtype: str) -> None:
    one = cell("rope + fourier", dtype=dtype)
    trainer = trained(one)
    assert {value.dtype for value in trainer.model.parameters()} == {torch.float32}
    assert math.isfinite(trainer.curve[-1].loss)
    single = trained(one.model_copy(update={"dtype": "float32"}))
    assert trainer.curve[-1].loss == pytest.approx(single.curve[-1].loss, abs=0.1)


def test_a_batch_norm_takes_the_statistics_of_the_training_to_the_test() -> None:
    """In the test an answer sees its own sequence alone, and in training those beside it."""
    model = trained(cell(model=ModelOptions(width=16, layers=2, heads=2, norm="batch"))).model
    tokens = load(TASK).batch(6, 16, torch.Generator().manual_seed(5)).tokens
    model.eval()
    assert torch.allclose(model(tokens)[:2], model(tokens[:2]), atol=1e-5)
    model.train()
    assert not torch.allclose(model(tokens)[:2], model(tokens[:2]), atol=1e-2)
