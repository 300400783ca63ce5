"""Train the model on a task from one seed, and test it at several lengths."""

import hashlib
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from grape_bench import checkpoint, timing
from grape_bench.backends import Backend, note
from grape_bench.cell import AccuracyCell
from grape_bench.errors import Unsupported
from grape_bench.evaluation import answer, count_right, test
from grape_bench.graphs import Recorded, sent, undecided
from grape_bench.model import Transformer, named_generator
from grape_bench.optimizer import make_optimizer, set_rates
from grape_bench.record import AccuracyReading, CurvePoint
from grape_bench.registry import Registry
from grape_bench.tasks import Batch, Task, load

_POINTS = 40  # of the training curve

Notify = Callable[[str], None]


class NanLossError(ArithmeticError):
    """The loss is no number any more."""


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
    task = load(cell.task)
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
    backend: Backend = Registry("backends")[cell.backend].load()()
    model = Transformer(
        cell.model,
        cell.encoding,
        backend,
        vocabulary=task.vocabulary,
        answers=task.answers,
        kinds=task.kinds,
        lengths=(cell.train_length, max(cell.train_length, *cell.test_lengths)),
    )
    model.reset(cell.seed, start=cell.training.start)
    return model


def training_batch(task: Task, cell: AccuracyCell, step: int) -> Batch:
    """The batch of one step: equal for all encodings, and the same whether or not the training was interrupted."""
    generator = named_generator(cell.seed, f"train/{step}")
    length = _length(cell, generator)
    return task.batch(cell.training.batch, length, generator)


def steps_by_length(cell: AccuracyCell) -> Counter[int]:
    """How many steps of each length (tokens) the training has."""
    return Counter(_length(cell, named_generator(cell.seed, f"train/{step}")) for step in range(cell.training.steps))


def _length(cell: AccuracyCell, generator: torch.Generator) -> int:
    length, shortest = cell.train_length, cell.training.shortest
    if shortest is not None:
        draw = torch.rand((), generator=generator).item()
        length = round(shortest * (length / shortest) ** draw)
        length -= length % 2 if cell.training.even else 0
    return length


@dataclass
class _Tally:
    """Sums since the last point of the curve."""

    loss: Tensor
    right: Tensor
    asked: Tensor
    steps: int = 0

    def clear(self) -> None:
        """Begin anew in the same tensors, since recorded steps add to these."""
        for one in (self.loss, self.right, self.asked):
            one.zero_()
        self.steps = 0


class Trainer:
    """AdamW on one model and task, a step at a time.

    Args:
        cell: names the recipe; device: where the model is.
    """

    def __init__(self, model: Transformer, task: Task, cell: AccuracyCell, device: str):
        self.model, self.task, self.cell, self.device = model, task, cell, device
        self.optimizer = make_optimizer(model, cell.training)
        self.scaler = torch.amp.GradScaler(device, enabled=cell.dtype == "float16")
        self.step, self.curve = 0, list[CurvePoint]()
        self._tally = self._zero()

    def run(self, notify: Notify, path: Path | None = None, every_s: float = 0.0) -> None:
        """Train to the last step, from the checkpoint at `path` where there is one."""
        steps = self.cell.training.steps
        every = max(1, steps // _POINTS)
        if path is not None and checkpoint.load(self, path):
            notify(f"goes on at step {self.step}")
        self.model.train()
        advance = self._on_device()
        saved = timing.seconds()
        while self.step < steps:
            self.model.redraw(self.cell.seed, str(self.step))
            set_rates(self.optimizer, self.cell.training, self.step)
            advance(sent(training_batch(self.task, self.cell, self.step), self.device))
            self._tally.steps += 1
            self.step += 1
            if self.step % every == 0 or self.step == steps:
                point = self._point()
                self.curve.append(point)
                notify(f"step {self.step}/{steps}, loss {point.loss:.3f}")
                if path is not None and timing.seconds() - saved >= every_s:
                    checkpoint.save(self, path)
                    saved = timing.seconds()

    def _on_device(self) -> Callable[[Batch], None]:
        """What makes the steps: a GPU is given them as graphs, where Python decides nothing in them."""
        if self.device != "cuda":
            return self._advance
        if reason := undecided(self.model, self.cell):
            note(f"steps run without a CUDA graph: {reason}")
            return self._advance
        return Recorded(self._advance, steps_by_length(self.cell))

    def _advance(self, batch: Batch) -> None:
        logits, labels = answer(self.model, batch, self.cell.dtype, self.device)
        loss = F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), self.cell.training.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        right, asked = count_right(logits, labels, batch, len(self.task.groups))
        self._tally.loss += loss.detach()
        self._tally.right += right
        self._tally.asked += asked

    def _point(self) -> CurvePoint:
        loss = (self._tally.loss / self._tally.steps).item()
        if not math.isfinite(loss):
            raise NanLossError(f"the loss is {loss} at step {self.step}")
        rates = (self._tally.right / self._tally.asked).tolist()
        named = zip(self.task.groups, rates, self._tally.asked.tolist(), strict=True)
        self._tally.clear()
        return CurvePoint(step=self.step, loss=loss, accuracy={one.name: rate for one, rate, asked in named if asked})

    def _zero(self) -> _Tally:
        count = len(self.task.groups)
        loss, right, asked = (torch.zeros(size, device=self.device) for size in ((), (count,), (count,)))
        return _Tally(loss, right, asked)
