"""Training steps as CUDA graphs: hundreds of launches recorded once, and made by one call from then on."""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import NamedTuple

import torch
from torch import Tensor

from grape_bench.backends import note
from grape_bench.cell import AccuracyCell
from grape_bench.encodings import Composition, Encoding
from grape_bench.encodings._wrapper import Wrapper
from grape_bench.model import Transformer
from grape_bench.tasks import Batch

Step = Callable[[Batch], None]
Record = Callable[[Callable[[], None]], Callable[[], None]]

PAYS = 8  # steps of one length, from which a recording is worth what it takes


class _Recording(NamedTuple):
    """What launches a recorded step, and the batch that it reads."""

    launch: Callable[[], None]
    inputs: Batch


class Recorded:
    """Runs training steps; those of a length that comes often are recorded at their second time, then only launched.

    The first step of a length runs plainly, so that whatever is chosen or copied once is there before a recording.
    A step that cannot be recorded runs plainly, and the notes say why.

    Args:
        step: all that one step does on the device. It reads its batch, and changes nothing but tensors that stay where
            they are: what Python does in it is done once.
        steps: how many steps of each length (tokens) the training has.
        record: turns a function into one that launches what it did; None for `CudaGraphs`.
    """

    def __init__(self, step: Step, steps: Mapping[int, int], record: Record | None = None):
        self._step, self._steps = step, steps
        self._record: Record | None = record or CudaGraphs()
        self._seen: set[int] = set()
        self._recordings: dict[int, _Recording] = {}

    def __call__(self, batch: Batch) -> None:
        """One step on a batch that is on the device."""
        length = batch.tokens.shape[1]
        if length not in self._recordings and self._record is not None and self._due(length):
            self._try(batch, self._record)
        if length not in self._recordings:
            self._step(batch)
            self._seen.add(length)
            return
        launch, inputs = self._recordings[length]
        for name, tensor in _tensors(batch).items():
            getattr(inputs, name).copy_(tensor)
        launch()

    def _due(self, length: int) -> bool:
        return length in self._seen and self._steps.get(length, 0) >= PAYS

    def _try(self, batch: Batch, record: Record) -> None:
        inputs = replace(batch, **{name: one.clone() for name, one in _tensors(batch).items()})
        try:
            launch = record(lambda: self._step(inputs))
        except RuntimeError as error:  # CUDA's word for a wait inside a recording, or for no memory left
            self._record = None
            note(f"steps run without a CUDA graph: {str(error).partition(chr(10))[0]}")
        else:
            self._recordings[batch.tokens.shape[1]] = _Recording(launch, inputs)
            note("steps run from CUDA graphs")


class CudaGraphs:
    """Records into one pool of memory, since no two of its graphs ever run at a time."""

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, step: Callable[[], None]) -> Callable[[], None]:
        """Record one step, which does not run it.

        Raises:
            RuntimeError: it waits for the device, or asks for more memory than there is.
        """
        graph = torch.cuda.CUDAGraph()
        current = torch.cuda.stream(torch.cuda.current_stream())  # a recording that fails leaves its own stream there
        with current, torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            step()
        return graph.replay


def undecided(model: Transformer, cell: AccuracyCell) -> str:
    """What Python decides anew in each step, so that no recording may stand for it; empty where it decides nothing."""
    if cell.dtype == "float16":
        return "float16 scales its loss, and may leave a step out"
    passing = (Encoding.redraw, Composition.redraw, Wrapper.redraw)
    drawn = [type(one) for one in model.modules() if isinstance(one, Encoding) and type(one).redraw not in passing]
    return f"{drawn[0].__name__.lower()} draws anew for each step" if drawn else ""


def sent(batch: Batch, device: str) -> Batch:
    """The batch on a device. The host does not wait for it, and makes the next one while the device computes."""
    if device == "cpu":
        return batch
    moved = {name: one.pin_memory().to(device, non_blocking=True) for name, one in _tensors(batch).items()}
    return replace(batch, **moved)


def _tensors(batch: Batch) -> dict[str, Tensor]:
    found = {one.name: getattr(batch, one.name) for one in fields(batch)}
    return {name: value for name, value in found.items() if isinstance(value, Tensor)}
