"""Train the model on a task from one seed, and test it at several lengths."""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from grape_bench import checkpoint, timing
from grape_bench.backends import Backend
from grape_bench.cell import AccuracyCell, TrainingOptions
from grape_bench.encodings import Encoding
from grape_bench.evaluation import answer, count_right, test
from grape_bench.model import Transformer, named_generator
from grape_bench.record import AccuracyReading, CurvePoint
from grape_bench.registry import Registry
from grape_bench.tasks import Batch, Task, load

_POINTS = 40  # of the training curve
_BETAS = (0.9, 0.98)
_FLOOR = 0.05  # of the peak learning rate, at the end

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
    scores = tuple(score for length in cell.test_lengths for score in test(model, task, cell, length, sha))
    if path is not None:
        path.unlink(missing_ok=True)
    return AccuracyReading(
        headline=task.headline,
        scores=scores,
        curve=tuple(trainer.curve),
        lr=cell.training.lr,
        data_sha=sha.hexdigest()[:16],
        parameters=sum(one.numel() for one in model.parameters()),
        train_s=spent[0],
        train_cpu_s=spent[1],
    )


def make_model(cell: AccuracyCell, task: Task) -> Transformer:
    """The cell's model with the initial values of its seed."""
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
    length, shortest = cell.train_length, cell.training.shortest
    if shortest is not None:
        draw = torch.rand((), generator=generator).item()
        length = round(shortest * (length / shortest) ** draw)
    return task.batch(cell.training.batch, length, generator)


def learning_rate(options: TrainingOptions, step: int) -> float:
    """Linear warm-up to `lr`, then a cosine to 5 % of it at the last step."""
    if step < options.warmup:
        return options.lr * (step + 1) / options.warmup
    done = (step - options.warmup) / max(1, options.steps - options.warmup)
    return options.lr * (_FLOOR + (1 - _FLOOR) * 0.5 * (1 + math.cos(math.pi * done)))


@dataclass
class _Tally:
    """Sums since the last point of the curve."""

    loss: Tensor
    right: Tensor
    asked: Tensor
    steps: int = 0


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
        saved = timing.seconds()
        while self.step < steps:
            self.model.redraw(self.cell.seed, str(self.step))
            self._advance(training_batch(self.task, self.cell, self.step))
            self.step += 1
            if self.step % every == 0 or self.step == steps:
                point = self._point()
                self.curve.append(point)
                notify(f"step {self.step}/{steps}, loss {point.loss:.3f}")
                if path is not None and timing.seconds() - saved >= every_s:
                    checkpoint.save(self, path)
                    saved = timing.seconds()

    def _advance(self, batch: Batch) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = group["factor"] * learning_rate(self.cell.training, self.step)
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
        self._tally.steps += 1

    def _point(self) -> CurvePoint:
        loss = (self._tally.loss / self._tally.steps).item()
        if not math.isfinite(loss):
            raise NanLossError(f"the loss is {loss} at step {self.step}")
        rates = (self._tally.right / self._tally.asked).tolist()
        names = [group.name for group in self.task.groups]
        self._tally = self._zero()
        return CurvePoint(step=self.step, loss=loss, accuracy=dict(zip(names, rates, strict=True)))

    def _zero(self) -> _Tally:
        count = len(self.task.groups)
        loss, right, asked = (torch.zeros(size, device=self.device) for size in ((), (count,), (count,)))
        return _Tally(loss, right, asked)


def make_optimizer(model: Transformer, options: TrainingOptions) -> torch.optim.AdamW:
    """AdamW: decay on matrices alone, none on encodings; learned bias tables at `table_lr` times the rate."""
    tables, own = set[int](), set[int]()
    for module in model.modules():
        if isinstance(module, Encoding):
            ids = {id(one) for one in module.parameters()}  # those of its linear layers, if it has any, included
            own |= ids
            tables |= ids if module.table_lr else set()
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for one in model.parameters():
        decay = options.weight_decay if one.dim() > 1 and id(one) not in own else 0.0
        factor = options.table_lr if id(one) in tables else 1.0
        groups.setdefault((factor, decay), []).append(one)
    rows = [{"params": ones, "factor": factor, "weight_decay": decay} for (factor, decay), ones in groups.items()]
    return torch.optim.AdamW(rows, lr=options.lr, betas=_BETAS)
