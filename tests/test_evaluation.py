"""Tests of a training: losses by another road, the two controls, and the statistics of norms."""

import hashlib
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from grape_bench import evaluation
from grape_bench.cell import AccuracyCell, ModelOptions, TrainingOptions
from grape_bench.evaluation import Answers, truncated, windowed
from grape_bench.model import Transformer, named_generator
from grape_bench.score import Score
from grape_bench.tasks import Batch, load
from grape_bench.training import make_model, train_and_test

TEXT, REGISTERS = "text", "registers(pairs=2, registers=2, writes=2)"


def cell(task: str = TEXT, encoding: str = "rope", *, layers: int = 2, **changes: Any) -> AccuracyCell:
    values = {
        "task": task,
        "encoding": encoding,
        "seed": 0,
        "train_length": 40,
        "test_lengths": (40, 80),
        "model": ModelOptions(width=16, layers=layers, heads=2, causal=True),
        "training": TrainingOptions(steps=2, batch=2, warmup=1, test_examples=6),
        "controls": True,
    }
    return AccuracyCell(**(values | changes))


def answers(one: AccuracyCell) -> Answers:
    task = load(one.task)
    return evaluation.test(make_model(one, task), task, one, hashlib.sha256())


def asked(scores: list[Score]) -> list[tuple[int, str, int]]:
    return [(one.length, one.group, one.total) for one in scores]


@torch.no_grad()
def test_a_loss_is_summed_by_group_over_every_sequence() -> None:
    one, task = cell(), load(TEXT)
    model = make_model(one, task)
    found = {(score.length, score.group): score for score in answers(one).scores}
    batch = task.held_out(6, 80, named_generator(0, "test/80"))
    chances = model(batch.tokens).softmax(-1).gather(-1, batch.labels[..., None])[..., 0]
    for group, places in (("0-31", range(32)), ("32-63", range(32, 48)), ("end", range(48, 80))):
        own = -chances[:, list(places)].log()
        assert found[80, group].nats == pytest.approx(own.sum().item(), rel=1e-4)
        assert found[80, group].loss == pytest.approx(own.mean().item(), rel=1e-4)
        assert found[80, group].total == 6 * len(places)
    assert found[80, "end"].normalised == pytest.approx(1 - found[80, "end"].loss / task.groups[0].blind_nats)


def test_only_a_task_that_is_judged_by_its_loss_records_one() -> None:
    assert {one.nats for one in answers(cell(REGISTERS)).scores} == {None}
    assert None not in {one.nats for one in answers(cell()).scores}


def test_a_group_that_nothing_was_asked_of_has_no_score() -> None:
    assert asked(answers(cell()).scores) == [
        (40, "end", 6 * 32), (40, "0-31", 6 * 8), (80, "end", 6 * 32), (80, "0-31", 6 * 32), (80, "32-63", 6 * 16),
    ]  # fmt: skip


def test_controls_ask_the_headline_questions_beyond_the_training_length() -> None:
    found = answers(cell())
    assert asked(found.windowed) == asked(found.truncated) == [(80, "end", 6 * 32)]
    without = answers(cell(controls=False))
    assert (without.windowed, without.truncated) == ([], [])
    assert without.scores == found.scores


def logits(model: Transformer, tokens: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return model.eval()(tokens)


@pytest.mark.parametrize("encoding", ["rope", "sinusoidal", "alibi", "rope + t5", "fox"])
@pytest.mark.parametrize("layers", [1, 2])
def test_a_window_hides_what_is_as_far_away_as_it_is_wide(encoding: str, layers: int) -> None:
    """Through two layers a token is seen twice as far."""
    model = make_model(cell(encoding=encoding, layers=layers), load(TEXT))
    tokens = torch.randint(0, 256, (1, 30), generator=named_generator(0, "tokens"))
    other = tokens.clone()
    other[0, 3] = (tokens[0, 3] + 1) % 256
    reach = 3 + layers * 7  # of a window of 8 the furthest key is 7 tokens away
    with windowed(model, 8):
        one, changed = logits(model, tokens), logits(model, other)
    differ = (one - changed).abs().amax(dim=(0, 2)) > 1e-6
    if encoding != "fox":  # its gates add up over all tokens between two
        assert not differ[reach + 1 :].any()
    assert differ[reach - 1 : reach + 1].any()
    assert not differ[:3].any()
    assert (logits(model, tokens) - logits(model, other)).abs().amax(dim=(0, 2))[reach + 1 :].max() > 1e-6


def test_a_model_is_as_it_was_after_a_window() -> None:
    model = make_model(cell(encoding="rope + t5"), load(TEXT))
    tokens = torch.randint(0, 256, (2, 30), generator=named_generator(0, "tokens"))
    before, names = logits(model, tokens), list(model.state_dict())
    with pytest.raises(RuntimeError), windowed(model, 4):
        raise RuntimeError
    assert torch.equal(logits(model, tokens), before)
    assert list(model.state_dict()) == names


def test_a_window_that_holds_the_whole_input_changes_nothing() -> None:
    model = make_model(cell(), load(TEXT))
    tokens = torch.randint(0, 256, (2, 30), generator=named_generator(0, "tokens"))
    plain = logits(model, tokens)
    with windowed(model, 30):
        torch.testing.assert_close(logits(model, tokens), plain)


def test_a_cut_input_keeps_its_last_tokens_and_their_questions() -> None:
    task = load(REGISTERS)
    batch = task.batch(3, 40, named_generator(0, "test"))
    cut = truncated(batch, 20)
    assert torch.equal(cut.tokens, batch.tokens[:, 20:])
    assert torch.equal(cut.labels, batch.labels)
    assert torch.equal(cut.groups, batch.groups)
    everywhere = truncated(load(TEXT).held_out(3, 80, named_generator(0, "test")), 40)
    assert everywhere.labels.shape == everywhere.tokens.shape == (3, 40)
    assert everywhere.groups.shape == (40,)


def test_a_question_keeps_its_kind_when_the_input_is_cut() -> None:
    whole = Batch(torch.arange(10)[None], torch.zeros(1, 4), torch.tensor([0, 1, 2, 3]), torch.tensor([5, 6, 7, 8]))
    cut = truncated(whole, 3)
    assert cut.kinds is not None
    assert (cut.groups.tolist(), cut.kinds.tolist(), cut.labels.shape[1]) == ([1, 2, 3], [6, 7, 8], 3)


@torch.no_grad()
def test_a_cut_input_of_text_is_one_of_the_training_length() -> None:
    """The same bytes are asked for at every length, so that the cut gives the figure of the training length."""
    found = answers(cell(encoding="sinusoidal"))
    (cut,) = found.truncated
    own = next(one for one in found.scores if one.of(40, "end"))
    assert cut.nats == pytest.approx(own.nats, rel=1e-6)


def test_a_reading_has_its_text_and_its_controls() -> None:
    reading = train_and_test(cell(), "cpu", lambda text: None)
    assert reading.text_sha == load(TEXT).digest
    assert len(reading.windowed) == len(reading.truncated) == 1
    assert all("128-255" not in point.accuracy for point in reading.curve)  # nothing was asked there
    plain = train_and_test(cell(REGISTERS, controls=False), "cpu", lambda text: None)
    assert (plain.text_sha, plain.windowed, plain.truncated) == (None, (), ())


def test_a_model_that_would_see_the_answer_is_refused() -> None:
    one = cell(model=ModelOptions(width=16, layers=1, heads=2))
    with pytest.raises(ValueError, match="bidirectional model sees; write causal: true"):
        make_model(one, load(TEXT))


def test_losses_are_those_of_cross_entropy() -> None:
    values = torch.randn(2, 5, 7, generator=named_generator(0, "logits"))
    labels = torch.randint(0, 7, (2, 5), generator=named_generator(0, "labels"))
    batch = Batch(labels, labels, torch.tensor([0, 1, 1, 0, 1]))
    found = evaluation.lost(values, labels, batch, 3)
    first = F.cross_entropy(values[:, [0, 3]].flatten(0, 1), labels[:, [0, 3]].flatten(), reduction="sum")
    whole = F.cross_entropy(values.flatten(0, 1), labels.flatten(), reduction="sum")
    assert found.tolist() == pytest.approx([first.item(), (whole - first).item(), 0.0])


def test_tests_in_several_batches_count_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = answers(cell(REGISTERS))
    monkeypatch.setattr(evaluation, "_AREA", 40 * 40 * 5)
    assert answers(cell(REGISTERS)) == whole


def test_test_batches_on_a_gpu_fill_a_share_of_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand: 2 heads, width 16; at 64 tokens a sequence has 3 * 2 * 64 * 64 + 16 * 16 * 64 numbers of 4 bytes."""
    device = SimpleNamespace(total_memory=8 * 4 * (24_576 + 16_384) * 10)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda name: device)
    assert evaluation.at_once(64, cell(), "cuda") == 10
    assert evaluation.at_once(2**20, cell(), "cuda") == 1
    assert evaluation.at_once(64, cell(), "cpu") == 2**22 // 64**2


def test_adapted_statistics_are_the_means_over_inputs_of_the_length(monkeypatch: pytest.MonkeyPatch) -> None:
    options = ModelOptions(width=16, layers=2, heads=2, norm="batch")
    one, task = cell(REGISTERS, model=options, training=TrainingOptions(batch=7, adapt=3)), load(REGISTERS)
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
