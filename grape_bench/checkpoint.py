"""An interrupted training goes on where it was: weights, optimizer and curve in one safetensors file."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from grape_bench.record import CurvePoint

if TYPE_CHECKING:
    from grape_bench.training import Trainer


def save(trainer: "Trainer", path: Path) -> None:
    """Write the state of a training at the end of a step; the old file stays until the new one is whole."""
    tensors = {f"model/{name}": value for name, value in _parameters(trainer).items()}
    for name, parameter in _parameters(trainer).items():
        for key, value in trainer.optimizer.state[parameter].items():
            tensors[f"optimizer/{name}/{key}"] = value
    tally = {"step": trainer.step, "scaler": trainer.scaler.state_dict()}
    curve = [point.model_dump() for point in trainer.curve]
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    metadata = {"state": json.dumps({**tally, "curve": curve})}
    save_file({name: value.detach().contiguous() for name, value in tensors.items()}, fresh, metadata=metadata)
    os.replace(fresh, path)


def load(trainer: "Trainer", path: Path) -> bool:
    """Put a saved state back; False where there is none that fits, and the training begins anew."""
    try:
        with safe_open(path, framework="pt", device=trainer.device) as file:
            state = json.loads(file.metadata()["state"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
        _restore(trainer, tensors)
    except (OSError, SafetensorError, KeyError, ValueError):
        return False
    trainer.step = state["step"]
    trainer.scaler.load_state_dict(state["scaler"])
    trainer.curve = [CurvePoint.model_validate(point) for point in state["curve"]]
    return True


def _restore(trainer: "Trainer", tensors: dict[str, Tensor]) -> None:
    parameters = _parameters(trainer)
    shapes = {f"model/{name}": parameter.shape for name, parameter in parameters.items()}
    if shapes != {key: value.shape for key, value in tensors.items() if key.startswith("model/")}:
        raise ValueError("the checkpoint is of another model")
    found: dict[str, dict[str, Tensor]] = {name: {} for name in parameters}
    for key, value in tensors.items():
        kind, name, *rest = key.split("/")
        if kind == "optimizer":
            found[name][rest[0]] = value.cpu() if rest[0] == "step" else value  # AdamW counts on the host
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(tensors[f"model/{name}"])
            trainer.optimizer.state[parameter] = found[name]


def _parameters(trainer: "Trainer") -> dict[str, Tensor]:
    return dict(trainer.model.named_parameters())
