"""An interrupted training goes on where it was: weights, optimizer and curve in one safetensors file."""

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from grape_bench.backends import note
from grape_bench.record import CurvePoint

if TYPE_CHECKING:
    from grape_bench.trainer import Trainer


def save(trainer: "Trainer", path: Path) -> None:
    """Write the state of a training at the end of a step; the old file stays until the new one is whole.

    A disk that takes no checkpoint costs no training: the record then notes why there was none.
    """
    tensors = {f"model/{name}": value for name, value in _state(trainer).items()}
    for name, parameter in _parameters(trainer).items():
        for key, value in trainer.optimizer.state[parameter].items():
            tensors[f"optimizer/{name}/{key}"] = value
    tally = {"step": trainer.step, "scaler": trainer.scaler.state_dict()}
    curve = [point.model_dump() for point in trainer.curve]
    whole = {name: value.detach().contiguous() for name, value in tensors.items()}
    metadata = {"state": json.dumps({**tally, "curve": curve, "sha256": _digest(whole)})}
    fresh = path.with_suffix(".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file(whole, fresh, metadata=metadata)
        os.replace(fresh, path)
    except (OSError, SafetensorError) as error:
        remove(fresh)
        note(f"a checkpoint could not be written: {_first_line(error)}")


def load(trainer: "Trainer", path: Path) -> bool:
    """Put a saved state back; False where there is none that is sound, and the training begins anew.

    The record notes where one was there and damaged.
    """
    if not path.exists():
        return False
    try:
        state, tensors = _read(path, trainer.device)
        curve = [CurvePoint.model_validate(point) for point in state["curve"]]
        step, scaler = int(state["step"]), dict(state["scaler"])
        _restore(trainer, tensors)
    except (OSError, SafetensorError, LookupError, ValueError, TypeError) as error:
        note(f"began anew, since its checkpoint cannot be used: {_first_line(error)}")
        return False
    trainer.step, trainer.curve = step, curve
    trainer.scaler.load_state_dict(scaler)
    return True


def remove(path: Path) -> None:
    """Take away what is not needed any more, or was not finished, where that can be."""
    with suppress(OSError):
        path.unlink()


def _read(path: Path, device: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    with safe_open(path, framework="pt", device=device) as file:
        state = json.loads(file.metadata()["state"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
    if state["sha256"] != _digest(tensors):
        raise ValueError("its bytes are not those that were written")
    return state, tensors


def _digest(tensors: dict[str, Tensor]) -> str:
    sha = hashlib.sha256()
    for name in sorted(tensors):
        sha.update(name.encode())
        sha.update(tensors[name].cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
    return sha.hexdigest()


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0] or type(error).__name__


def _restore(trainer: "Trainer", tensors: dict[str, Tensor]) -> None:
    parameters, state = _parameters(trainer), _state(trainer)
    shapes = {f"model/{name}": value.shape for name, value in state.items()}
    if shapes != {key: value.shape for key, value in tensors.items() if key.startswith("model/")}:
        raise ValueError("the checkpoint is of another model")
    found: dict[str, dict[str, Tensor]] = {name: {} for name in parameters}
    counts_on_host = not trainer.optimizer.defaults["capturable"]  # where no graph holds the steps
    for key, value in tensors.items():
        kind, name, *rest = key.split("/")
        if kind == "optimizer":
            found[name][rest[0]] = value.cpu() if rest[0] == "step" and counts_on_host else value
    with torch.no_grad():
        for name, value in state.items():
            value.copy_(tensors[f"model/{name}"])
        for name, parameter in parameters.items():
            trainer.optimizer.state[parameter] = found[name]


def _parameters(trainer: "Trainer") -> dict[str, Tensor]:
    return dict(trainer.model.named_parameters())


def _state(trainer: "Trainer") -> dict[str, Tensor]:
    """Parameters, and the statistics that norms keep; what layers share is there once."""
    kept = trainer.model.state_dict().keys()
    return _parameters(trainer) | {name: one for name, one in trainer.model.named_buffers() if name in kept}
