"""Train the model on a task from one seed, and test it at several lengths."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from grape_bench import backends, checkpoint, tasks, timing
from grape_bench.cell import AccuracyCell
from grape_bench.errors import Unsupported
from grape_bench.evaluation import test
from grape_bench.model import Transformer
from grape_bench.record import AccuracyReading
from grape_bench.tasks import Task
from grape_bench.trainer import Notify, Trainer, training_batch


@dataclass(frozen=True)
class Checkpoints:
    """Where trainings are kept while they run.

    Args:
        folder: one file a cell; every_s: seconds between two writes.
    """

    folder: Path
    every_s: float = 30.0


def train_and_test(
    cell: AccuracyCell, device: str, notify: Notify, *, lr: float | None = None, checkpoints: Checkpoints | None = None
) -> AccuracyReading:
    """Do everything that an accuracy cell asks for.

    Args:
        device: `cpu` or `cuda`; notify: is told how far it is, in words.
        lr: the rate that tuning chose, None for the recipe's.
        checkpoints: where an interrupted training goes on from, and is kept.

    Raises:
        Unsupported: the encoding, model and task do not fit together.
        NanLossError: training diverged.
    """
    path = checkpoints.folder / f"{cell.id}.safetensors" if checkpoints else None
    if lr is not None:
        cell = cell.model_copy(update={"training": cell.training.model_copy(update={"lr": lr})})
    task = tasks.load(cell.task)
    model = make_model(cell, task).to(device)
    trainer = Trainer(model, task, cell, device)
    wall, cpu = timing.seconds(), timing.cpu_seconds()
    trainer.run(notify, path, checkpoints.every_s if checkpoints else 0.0)
    spent = timing.seconds() - wall, timing.cpu_seconds() - cpu
    sha = hashlib.sha256(training_batch(task, cell, 0).data)
    model.redraw(cell.seed, "test")
    tested = test(model, task, cell, sha)
    if path is not None:
        checkpoint.remove(path)
    return AccuracyReading(
        headline=task.headline,
        scores=tuple(tested.scores),
        curve=tuple(trainer.curve),
        lr=cell.training.lr,
        data_sha=sha.hexdigest()[:16],
        parameters=sum(one.numel() for one in model.parameters()),
        train_s=spent[0],
        train_cpu_s=spent[1],
        text_sha=task.digest or None,
        windowed=tuple(tested.windowed),
        truncated=tuple(tested.truncated),
    )


def make_model(cell: AccuracyCell, task: Task) -> Transformer:
    """The cell's model with the initial values of its seed.

    Raises:
        Unsupported: the model would see the task's answers, or cannot have this encoding.
    """
    if task.domain == "causal" and not cell.model.causal:
        raise Unsupported(f"{cell.task} asks for the next token, which a bidirectional model sees; write causal: true")
    model = Transformer(
        cell.model,
        cell.encoding,
        backends.load(cell.backend),
        vocabulary=task.vocabulary,
        answers=task.answers,
        kinds=task.kinds,
        lengths=(cell.train_length, max(cell.train_length, *cell.test_lengths)),
    )
    model.reset(cell.seed, start=cell.training.start)
    return model
