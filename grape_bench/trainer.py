"""One training, a step at a time."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from grape_bench import checkpoint, timing
from grape_bench.backends import note
from grape_bench.cell import AccuracyCell
from grape_bench.evaluation import answer, count_right
from grape_bench.graphs import Recorded, sent, undecided
from grape_bench.model import Transformer, named_generator
from grape_bench.optimizer import make_optimizer, set_rates
from grape_bench.record import CurvePoint
from grape_bench.tasks import Batch, Task

_POINTS = 40  # of the training curve

Notify = Callable[[str], None]


class NanLossError(ArithmeticError):
    """The loss is no number any more."""


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
