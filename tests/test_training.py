"""Training: equal data for all encodings, equal results for equal cells, and what a reading holds."""

import math
from typing import Any

import pytest
import torch

from grape_bench.cell import AccuracyCell, ModelOptions, TrainingOptions
from grape_bench.errors import Unsupported
from grape_bench.record import AccuracyReading
from grape_bench.tasks import load
from grape_bench.training import make_model, train_and_test

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


def train(one: AccuracyCell, **options: Any) -> AccuracyReading:
    return train_and_test(one, "cpu", lambda text: None, **options)


def timeless(reading: AccuracyReading) -> dict[str, Any]:
    return reading.model_dump(exclude={"train_s", "train_cpu_s"})


def test_equal_cells_give_equal_scores_and_curves() -> None:
    one, other = train(cell("rope + t5")), train(cell("rope + t5"))
    assert timeless(one) == timeless(other)
    assert timeless(train(cell("rope + t5", seed=1))) != timeless(one)


def test_results_do_not_depend_on_what_was_trained_before() -> None:
    expected = timeless(train(cell("learned")))
    train(cell("t5", seed=3))
    torch.manual_seed(99)
    assert timeless(train(cell("learned"))) == expected


def test_data_are_equal_for_all_encodings_of_a_seed() -> None:
    hashes = {encoding: train(cell(encoding)).data_sha for encoding in ("none", "rope", "learned", "alibi + t5")}
    assert len(set(hashes.values())) == 1
    assert train(cell("none", seed=1)).data_sha != hashes["none"]


def test_scores_count_every_question_of_every_length() -> None:
    reading = train(cell())
    assert [(one.length, one.group) for one in reading.scores] == [
        (16, "recall"),
        (16, "cmp"),
        (24, "recall"),
        (24, "cmp"),
    ]
    assert {one.total for one in reading.scores} == {12 * 2}
    assert reading.headline == "recall"
    assert [(one.blind, one.chance) for one in reading.scores[:2]] == [(0.5, 0.1), (0.5, 0.5)]


def test_a_training_learns() -> None:
    """From guessing among twelve answers, ln 12, most of the way to what a blind reader knows, ln 2."""
    reading = train(cell("rope", recipe={"steps": 200, "batch": 32, "warmup": 10}))
    assert reading.curve[0].loss > 1.5
    assert reading.curve[-1].loss < 0.95
    assert reading.parameters == sum(one.numel() for one in make_model(cell("rope"), load(TASK)).parameters())


def test_mixed_lengths_train_and_test() -> None:
    assert math.isfinite(train(cell(recipe={"shortest": 9})).curve[-1].loss)


def test_a_length_without_room_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="at least"):
        train(cell(train_length=4, test_lengths=(4,)))


def test_the_rate_that_tuning_chose_is_used_and_recorded() -> None:
    reading = train(cell(), lr=0.02)
    assert reading.lr == 0.02
    expected = timeless(train(cell(recipe={"lr": 0.02})))
    assert timeless(reading) == expected


def test_adapting_changes_the_test_and_not_the_training() -> None:
    model = ModelOptions(width=16, layers=2, heads=2, norm="batch")
    kept, adapted = train(cell(model=model)), train(cell(model=model, recipe={"adapt": 2}))
    assert kept.curve == adapted.curve
    assert kept.data_sha == adapted.data_sha
    assert [one.correct for one in kept.scores] != [one.correct for one in adapted.scores]


def test_what_is_scaled_after_training_was_trained_as_rope() -> None:
    """Position interpolation, NTK and YaRN at the length of the text, and log-length scaling, leave training alone."""
    rope = train(cell("rope"))
    for text in ("interpolated(rope)", "dynamic_ntk", "yarn(factor=None)", "rope + log_length"):
        other = train(cell(text))
        assert [point.loss for point in other.curve] == pytest.approx([point.loss for point in rope.curve], abs=1e-5)
