"""An interrupted training ends with the same numbers as an undisturbed one."""

import pytest
import torch

from grape_bench import checkpoint
from grape_bench.backends import noting
from grape_bench.cell import AccuracyCell, ModelOptions, TrainingOptions
from grape_bench.tasks import load
from grape_bench.trainer import Trainer
from grape_bench.training import Checkpoints, make_model, train_and_test


def make_cell(encoding: str, dtype: str = "float32", norm: str = "layer") -> AccuracyCell:
    return AccuracyCell(
        task="registers(registers=2, writes=2, pairs=2)",
        encoding=encoding,
        dtype=dtype,
        seed=5,
        train_length=16,
        test_lengths=(16, 24),
        model=ModelOptions(width=16, heads=2, norm=norm),
        training=TrainingOptions(steps=80, batch=4, warmup=4, test_examples=16),
    )


class Interrupted(Exception):
    """Stands for the end of the process."""


def interrupt_at(step: int):
    def notify(text: str) -> None:
        if text.startswith(f"step {step}/"):
            raise Interrupted

    return notify


@pytest.mark.parametrize(
    ("encoding", "dtype", "norm"),
    [
        ("learned", "float32", "layer"),
        ("rope + fourier", "float32", "layer"),
        ("t5", "float16", "layer"),
        ("rope", "float32", "batch"),  # which keeps statistics
    ],
)
def test_an_interrupted_training_goes_on_to_the_same_numbers(encoding, dtype, norm, tmp_path):
    cell = make_cell(encoding, dtype, norm)
    undisturbed = train_and_test(cell, "cpu", lambda text: None)
    kept, heard = Checkpoints(tmp_path, every_s=0.0), []
    with pytest.raises(Interrupted):
        train_and_test(cell, "cpu", interrupt_at(50), checkpoints=kept)
    assert list(tmp_path.glob("*.safetensors"))
    resumed = train_and_test(cell, "cpu", heard.append, checkpoints=kept)
    assert heard[0] == "goes on at step 48"
    times = {"train_s": 0.0, "train_cpu_s": 0.0}
    assert resumed.model_copy(update=times) == undisturbed.model_copy(update=times)
    assert not list(tmp_path.iterdir()), "a finished training keeps no checkpoint"


def test_a_checkpoint_that_is_cut_short_is_passed_over(tmp_path):
    cell = make_cell("rope")
    task = load(cell.task)
    trainer = Trainer(make_model(cell, task), task, cell, "cpu")
    path = tmp_path / "one.safetensors"
    checkpoint.save(trainer, path)
    path.write_bytes(path.read_bytes()[:100])
    assert checkpoint.load(trainer, path) is False
    assert trainer.step == 0


def test_a_checkpoint_of_another_model_is_passed_over_and_changes_nothing(tmp_path):
    small, large = make_cell("rope"), make_cell("t5").model_copy(update={"model": ModelOptions(width=32, heads=2)})
    trainers = [Trainer(make_model(cell, load(cell.task)), load(cell.task), cell, "cpu") for cell in (small, large)]
    path = tmp_path / "one.safetensors"
    checkpoint.save(trainers[0], path)
    before = [one.clone() for one in trainers[1].model.parameters()]
    assert checkpoint.load(trainers[1], path) is False
    assert all(torch.equal(one, other) for one, other in zip(before, trainers[1].model.parameters(), strict=True))


def test_a_damaged_checkpoint_is_noted_and_changes_nothing(tmp_path):
    """One bit of a weight is another: only the digest knows."""
    cell = make_cell("rope")
    task = load(cell.task)
    trainer = Trainer(make_model(cell, task), task, cell, "cpu")
    path = tmp_path / "one.safetensors"
    checkpoint.save(trainer, path)
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    before = [one.clone() for one in trainer.model.parameters()]
    with noting() as notes:
        assert checkpoint.load(trainer, path) is False
    assert notes == ["began anew, since its checkpoint cannot be used: its bytes are not those that were written"]
    assert all(map(torch.equal, before, trainer.model.parameters()))


def test_a_disk_that_takes_no_checkpoint_costs_no_training(tmp_path):
    """The folder of checkpoints is a file."""
    cell, folder = make_cell("rope"), tmp_path / "checkpoints"
    folder.write_text("in the way")
    with noting() as notes:
        reading = train_and_test(cell, "cpu", lambda text: None, checkpoints=Checkpoints(folder, every_s=0.0))
    assert reading.scores == train_and_test(cell, "cpu", lambda text: None).scores
    assert len(notes) == 1
    assert notes[0].startswith("a checkpoint could not be written: ")
