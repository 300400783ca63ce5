"""Ask the model, and count right answers by group and length."""

import hashlib
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

from grape_bench.cell import AccuracyCell
from grape_bench.model import Transformer, named_generator
from grape_bench.record import Score
from grape_bench.tasks import Batch, Task

_AREA = 2**22  # sequences times squared length in one test batch, which bounds its memory


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
def test(model: Transformer, task: Task, cell: AccuracyCell, length: int, sha: "hashlib._Hash") -> Iterator[Score]:
    """Answer the test sequences of one length, and count by group.

    Args:
        sha: takes in the test data.
    """
    model.eval()
    device = next(model.parameters()).device.type
    whole = task.batch(cell.training.test_examples, length, named_generator(cell.seed, f"test/{length}"))
    sha.update(whole.data)
    size = max(1, _AREA // length**2)
    right = torch.zeros(len(task.groups), device=device)
    asked = torch.zeros_like(right)
    for tokens, labels in zip(whole.tokens.split(size), whole.labels.split(size), strict=True):
        batch = Batch(tokens, labels, whole.groups, whole.kinds)
        some, of = count_right(*answer(model, batch, cell.dtype, device), batch, len(task.groups))
        right += some
        asked += of
    for index, group in enumerate(task.groups):
        yield Score(
            length=length,
            group=group.name,
            correct=int(right[index]),
            total=int(asked[index]),
            blind=group.blind,
            chance=group.chance,
        )
