"""Ask the model, and count right answers by group and length."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from grape_bench.cell import AccuracyCell
from grape_bench.encodings import Composition, build
from grape_bench.model import TokenNorm, Transformer, named_generator
from grape_bench.score import Score
from grape_bench.tasks import Batch, Task

_AREA = 2**22  # sequences times squared length in one test batch on a CPU, which bounds its memory
_SHARE = 8  # of a GPU's memory for one test batch: four trainings may be there, each with as much again to hold


@dataclass
class Answers:
    """The scores of a training, as in `AccuracyReading`."""

    scores: list[Score]
    windowed: list[Score]
    truncated: list[Score]


def answer(model: Transformer, batch: Batch, dtype: str, device: str) -> tuple[Tensor, Tensor]:
    """Logits (B, m, answers) and labels (B, m), half precision by autocast over float32 weights."""
    half = dtype != "float32"
    with torch.autocast(device, getattr(torch, dtype) if half else torch.bfloat16, enabled=half):
        kinds = None if batch.kinds is None else batch.kinds.to(device)
        logits = model(batch.tokens.to(device), tail=batch.labels.shape[1], kinds=kinds)
    return logits, batch.labels.to(device)


def count_right(logits: Tensor, labels: Tensor, batch: Batch, groups: int) -> tuple[Tensor, Tensor]:
    """Right answers and questions, each (groups,)."""
    right = (logits.argmax(-1) == labels).float()
    member = F.one_hot(batch.groups.to(labels.device), groups).float()  # (m, groups)
    return right.sum(0) @ member, member.sum(0) * labels.shape[0]


@torch.no_grad()
def test(model: Transformer, task: Task, cell: AccuracyCell, sha: "hashlib._Hash") -> Answers:
    """Answer the test sequences of each length, and those beyond the training length with the controls of the cell.

    Args:
        sha: takes in the test data.
    """
    model.eval()
    tested = Answers([], [], [])
    for length in cell.test_lengths:
        adapt(model, task, cell, length)
        batch = task.held_out(cell.training.test_examples, length, named_generator(cell.seed, f"test/{length}"))
        sha.update(batch.data)
        tested.scores += _scores(model, task, cell, batch, length)
        if cell.controls and length > cell.train_length:
            with windowed(model, cell.train_length):
                tested.windowed += _headline(task, _scores(model, task, cell, batch, length))
            cut = truncated(batch, cell.train_length)
            tested.truncated += _headline(task, _scores(model, task, cell, cut, length))
    return tested


def adapt(model: Transformer, task: Task, cell: AccuracyCell, length: int) -> None:
    """Replace what norms keep of the training by means over inputs of one length: nothing is learned, no answer seen.

    Args:
        cell: its training says how many batches; none leaves the model as it is.
        length: tokens, of sequences that are neither trained nor tested.
    """
    if cell.training.adapt is None:
        return
    norms = [one for one in model.modules() if isinstance(one, TokenNorm)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a plain mean over the batches
        norm.train()
    device = next(model.parameters()).device.type
    for index in range(cell.training.adapt):
        generator = named_generator(cell.seed, f"adapt/{length}/{index}")
        answer(model, task.batch(cell.training.batch, length, generator), cell.dtype, device)
    for norm in norms:
        norm.eval()


@contextmanager
def windowed(model: Transformer, tokens: int) -> Iterator[None]:
    """Within, no query of the model sees a key that lies so many tokens away or further."""
    own = [attention.encoding for attention in model.attentions]
    try:
        for attention in model.attentions:
            near = build(f"window(tokens={tokens})", attention.site)
            attention.encoding = Composition([attention.encoding, near])
        yield
    finally:
        for attention, encoding in zip(model.attentions, own, strict=True):
            attention.encoding = encoding


def truncated(batch: Batch, tokens: int) -> Batch:
    """The same questions with the last tokens alone, and no question about what is cut off."""
    asked = min(batch.labels.shape[1], tokens)
    kinds = None if batch.kinds is None else batch.kinds[-asked:]
    return Batch(batch.tokens[:, -tokens:], batch.labels[:, -asked:], batch.groups[-asked:], kinds)


def _headline(task: Task, scores: Iterator[Score]) -> Iterator[Score]:
    return (one for one in scores if one.group == task.headline)


def _scores(model: Transformer, task: Task, cell: AccuracyCell, whole: Batch, length: int) -> Iterator[Score]:
    """Count by group; a group that nothing was asked of has no score."""
    device = next(model.parameters()).device.type
    right, asked, nats = torch.zeros(3, len(task.groups), device=device, dtype=torch.float64)
    size = at_once(whole.tokens.shape[1], cell, device)
    for tokens, labels in zip(whole.tokens.split(size), whole.labels.split(size), strict=True):
        batch = Batch(tokens, labels, whole.groups, whole.kinds)
        logits, wanted = answer(model, batch, cell.dtype, device)
        some, of = count_right(logits, wanted, batch, len(task.groups))
        right += some
        asked += of
        nats += lost(logits, wanted, batch, len(task.groups))
    for index, group in enumerate(task.groups):
        if asked[index]:
            yield Score(
                length=length,
                group=group.name,
                correct=int(right[index]),
                total=int(asked[index]),
                blind=group.blind,
                chance=group.chance,
                nats=None if group.blind_nats is None else nats[index].item(),
                blind_nats=group.blind_nats,
            )


def at_once(length: int, cell: AccuracyCell, device: str) -> int:
    """Sequences of one test batch: on a GPU as many as fit into a share of its memory, if all scores are kept.

    The share is one of all its memory and not of what is free, which depends on who else trains at the moment.
    """
    if device == "cpu":
        return max(1, _AREA // length**2)
    numbers = 3 * cell.model.heads * length**2 + 16 * cell.model.width * length  # scores, weights, sum; activations
    memory: int = torch.cuda.get_device_properties(device).total_memory
    return max(1, memory // _SHARE // (4 * numbers))


def lost(logits: Tensor, labels: Tensor, batch: Batch, groups: int) -> Tensor:
    """Summed loss (groups,) in nats."""
    each = F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), reduction="none").view_as(labels)
    return each.double().sum(0) @ F.one_hot(batch.groups.to(labels.device), groups).double()
