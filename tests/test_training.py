"""Training: its schedule by hand, equal data for all encodings, and equal results for equal cells."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from grape_bench import evaluation, training
from grape_bench.cell import AccuracyCell, ModelOptions, TrainingOptions
from grape_bench.encodings import At, Encoding, Site
from grape_bench.errors import Unsupported
from grape_bench.model import Transformer
from grape_bench.optimizer import learning_rate, make_optimizer
from grape_bench.record import AccuracyReading
from grape_bench.tasks import load
from grape_bench.training import (
    Checkpoints,
    NanLossError,
    Trainer,
    make_model,
    train_and_test,
    training_batch,
)

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


def test_the_rate_rises_in_a_line_and_falls_in_a_cosine() -> None:
    options = TrainingOptions(steps=104, warmup=4, lr=2.0)
    assert [learning_rate(options, step) for step in range(4)] == pytest.approx([0.5, 1.0, 1.5, 2.0])
    assert learning_rate(options, 4) == pytest.approx(2.0)
    # Half way between the peak and 5 % of it; a quarter: 0.05 + 0.95 (1 + cos(pi / 4)) / 2 of the peak.
    assert learning_rate(options, 54) == pytest.approx(2.0 * 0.525, rel=2e-2)
    assert learning_rate(options, 29) == pytest.approx(2.0 * 0.8608757, rel=2e-2)
    assert learning_rate(options, 103) == pytest.approx(0.1, rel=1e-2)
    rates = [learning_rate(options, step) for step in range(4, 104)]
    assert rates == sorted(rates, reverse=True)


def test_no_warm_up_begins_at_the_peak() -> None:
    assert learning_rate(TrainingOptions(steps=10, warmup=0, lr=1.0), 0) == pytest.approx(1.0)


def test_a_warm_up_that_outlasts_the_training_still_rises() -> None:
    options = TrainingOptions(steps=5, warmup=100, lr=1.0)
    assert [learning_rate(options, step) for step in range(5)] == pytest.approx([0.01, 0.02, 0.03, 0.04, 0.05])


def settings(model: Transformer, options: TrainingOptions) -> dict[str, tuple[float, float]]:
    """Factor and decay by the parameter's name."""
    names = {id(value): name for name, value in model.named_parameters()}
    groups = make_optimizer(model, options).param_groups
    found = {names[id(one)]: (group["factor"], group["weight_decay"]) for group in groups for one in group["params"]}
    assert found.keys() == set(names.values()), "each parameter in exactly one group"
    assert sum(len(group["params"]) for group in groups) == len(names)
    return found


def test_tables_learn_faster_and_nothing_of_an_encoding_decays() -> None:
    one = cell("rope + t5 + fourier + learned")
    found = settings(make_model(one, load(TASK)), TrainingOptions(weight_decay=0.02, table_lr=7.0))
    by_part = {name.split(".encoding.")[1]: value for name, value in found.items() if ".encoding." in name}
    assert by_part == {"parts.1.table": (7.0, 0.0), "parts.2.amplitude": (7.0, 0.0), "parts.3.table": (1.0, 0.0)}
    for name, value in found.items():
        if ".encoding." not in name:
            matrix = name.endswith("weight") and "norm" not in name
            assert value == (1.0, 0.02 if matrix else 0.0), name


class Gated(Encoding):
    """An encoding with a linear layer of its own."""

    def __init__(self, site: Site):
        super().__init__()
        self.gate = torch.nn.Linear(site.width, 1)

    def embed(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        return x * self.gate(x).sigmoid()


def test_a_linear_layer_of_an_encoding_does_not_decay_either() -> None:
    model = make_model(cell("none"), load(TASK))
    model.layers[0].attention.encoding = Gated(Site(16, 2, 2, 8, 16, 16))  # type: ignore[union-attr]
    found = settings(model, TrainingOptions())
    assert found["layers.0.attention.encoding.gate.weight"] == (1.0, 0.0)


def test_each_step_has_the_rate_of_its_schedule() -> None:
    one = cell("t5", recipe={"lr": 0.01, "table_lr": 5.0})
    task = load(TASK)
    trainer = Trainer(make_model(one, task), task, one, "cpu")
    trainer.run(lambda text: None)
    rates = sorted(group["lr"] for group in trainer.optimizer.param_groups)
    last = learning_rate(one.training, 7)
    assert rates == pytest.approx([last, last, 5 * last])


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


def test_no_batch_depends_on_the_encoding_or_on_earlier_batches() -> None:
    task = load(TASK)
    for step in (0, 5):
        one, other = (training_batch(task, cell(encoding), step) for encoding in ("none", "learned"))
        assert torch.equal(one.tokens, other.tokens)
        assert torch.equal(one.labels, other.labels)
    assert not torch.equal(training_batch(task, cell(), 0).tokens, training_batch(task, cell(), 1).tokens)


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


def test_the_curve_ends_at_the_last_step() -> None:
    curve = train(cell(recipe={"steps": 90})).curve
    assert curve[-1].step == 90
    assert [one.step for one in curve] == sorted({one.step for one in curve})
    assert all(set(one.accuracy) == {"recall", "cmp"} for one in curve)


def test_a_training_learns() -> None:
    """From guessing among twelve answers, ln 12, most of the way to what a blind reader knows, ln 2."""
    reading = train(cell("rope", recipe={"steps": 200, "batch": 32, "warmup": 10}))
    assert reading.curve[0].loss > 1.5
    assert reading.curve[-1].loss < 0.95
    assert reading.parameters == sum(one.numel() for one in make_model(cell("rope"), load(TASK)).parameters())


class Broken(Encoding):
    def embed(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        return x * math.nan

    def bias(self, q: torch.Tensor, features: torch.Tensor | None, at: At) -> None:
        return None


def test_a_loss_that_is_no_number_ends_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    real = training.make_model

    def made(one: AccuracyCell, task: Any) -> Transformer:
        model = real(one, task)
        model.layers[0].attention.encoding = Broken()  # type: ignore[union-attr]
        return model

    monkeypatch.setattr(training, "make_model", made)
    with pytest.raises(NanLossError, match="nan at step 1"):
        train(cell("none"))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_trains_over_float32_weights(dtype: str) -> None:
    one = cell("rope + fourier", dtype=dtype)
    task = load(TASK)
    model = make_model(one, task)
    trainer = Trainer(model, task, one, "cpu")
    trainer.run(lambda text: None)
    assert {value.dtype for value in model.parameters()} == {torch.float32}
    assert math.isfinite(trainer.curve[-1].loss)
    single = train(one.model_copy(update={"dtype": "float32"}))
    assert trainer.curve[-1].loss == pytest.approx(single.curve[-1].loss, abs=0.1)


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


def test_mixed_lengths_train_and_test() -> None:
    assert math.isfinite(train(cell(recipe={"shortest": 9})).curve[-1].loss)


def test_a_length_without_room_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="at least"):
        train(cell(train_length=4, test_lengths=(4,)))


def test_tests_in_several_batches_count_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = timeless(train(cell()))
    monkeypatch.setattr(evaluation, "_AREA", 16 * 16 * 5)
    assert timeless(train(cell())) == whole


def test_test_batches_on_a_gpu_fill_a_share_of_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand: 2 heads, width 16; at 64 tokens a sequence has 3 * 2 * 64 * 64 + 16 * 16 * 64 numbers of 4 bytes."""
    device = SimpleNamespace(total_memory=8 * 4 * (24_576 + 16_384) * 10)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda name: device)
    assert evaluation.at_once(64, cell(), "cuda") == 10
    assert evaluation.at_once(2**20, cell(), "cuda") == 1
    assert evaluation.at_once(64, cell(), "cpu") == 2**22 // 64**2


def test_an_interrupted_training_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    one = cell("rope + t5", recipe={"steps": 12})
    expected = timeless(train(one))

    class StopError(Exception):
        pass

    def stop(text: str) -> None:
        if text.startswith("step 7/"):
            raise StopError

    kept = Checkpoints(tmp_path, every_s=0.0)
    with pytest.raises(StopError):
        train_and_test(one, "cpu", stop, checkpoints=kept)
    (file,) = tmp_path.iterdir()
    said: list[str] = []
    again = train_and_test(one, "cpu", said.append, checkpoints=kept)
    assert said[0] == "goes on at step 6"
    assert timeless(again) == expected
    assert not file.exists()


def test_the_rate_that_tuning_chose_is_used_and_recorded() -> None:
    reading = train(cell(), lr=0.02)
    assert reading.lr == 0.02
    expected = timeless(train(cell(recipe={"lr": 0.02})))
    assert timeless(reading) == expected


BATCH = ModelOptions(width=16, layers=2, heads=2, norm="batch")


def test_a_batch_norm_takes_the_statistics_of_the_training_to_the_test() -> None:
    """In the test an answer sees its own sequence alone, and in training those beside it."""
    one = cell(model=BATCH)
    task = load(TASK)
    model = make_model(one, task)
    trainer = Trainer(model, task, one, "cpu")
    trainer.run(lambda text: None)
    tokens = task.batch(6, 16, torch.Generator().manual_seed(5)).tokens
    model.eval()
    assert torch.allclose(model(tokens)[:2], model(tokens[:2]), atol=1e-5)
    model.train()
    assert not torch.allclose(model(tokens)[:2], model(tokens[:2]), atol=1e-2)


def test_adapted_statistics_are_the_means_over_inputs_of_the_length(monkeypatch: pytest.MonkeyPatch) -> None:
    one, task = cell(model=BATCH, recipe={"adapt": 3, "batch": 7}), load(TASK)
    model = make_model(one, task).eval()
    norm: Any = model.layers[0].norm_attention
    learned = {name: value.clone() for name, value in model.named_parameters()}
    drawn, draw = [], task.batch
    monkeypatch.setattr(task, "batch", lambda *asked: drawn.append(draw(*asked)) or drawn[-1])
    for length in (24, 16):  # the second must not remember the first
        drawn.clear()
        evaluation.adapt(model, task, one, length)
        assert [batch.tokens.shape for batch in drawn] == [(7, length)] * 3
        means = [model.tokens(batch.tokens).flatten(0, 1).mean(0) for batch in drawn]
        torch.testing.assert_close(norm.running_mean, sum(means) / 3)
    assert not any(module.training for module in model.modules())
    assert all(torch.equal(value, learned[name]) for name, value in model.named_parameters())


def test_adapting_changes_the_test_and_not_the_training() -> None:
    kept, adapted = train(cell(model=BATCH)), train(cell(model=BATCH, recipe={"adapt": 2}))
    assert kept.curve == adapted.curve
    assert kept.data_sha == adapted.data_sha
    assert [one.correct for one in kept.scores] != [one.correct for one in adapted.scores]


def test_the_statistics_of_norms_outlast_an_interruption(tmp_path: Path) -> None:
    one = cell(model=BATCH, recipe={"steps": 12})
    expected = timeless(train(one))

    class StopError(Exception):
        pass

    def stop(text: str) -> None:
        if text.startswith("step 7/"):
            raise StopError

    kept = Checkpoints(tmp_path, every_s=0.0)
    with pytest.raises(StopError):
        train_and_test(one, "cpu", stop, checkpoints=kept)
    assert timeless(train_and_test(one, "cpu", lambda text: None, checkpoints=kept)) == expected


def test_what_is_scaled_after_training_was_trained_as_rope() -> None:
    """Position interpolation, NTK and YaRN at the length of the text, and log-length scaling, leave training alone."""
    rope = train(cell("rope"))
    for text in ("interpolated(rope)", "dynamic_ntk", "yarn(factor=None)", "rope + log_length"):
        other = train(cell(text))
        assert [point.loss for point in other.curve] == pytest.approx([point.loss for point in rope.curve], abs=1e-5)
