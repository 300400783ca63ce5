"""A Ray cluster: how it is reached, and how its devices are reserved."""

import logging
import os
import shutil
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

import grape_bench
from grape_bench.errors import UserError
from grape_bench.origin import Origin, named
from grape_bench.resources import Resources

_RESERVED_WITHIN_S = 30.0
_KNOCK_S = 10.0
_STORE_BYTES = 100 * 2**20  # what travels is small
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # Ray would set as many as a task has cores


@dataclass(frozen=True)
class Reserved:
    """A device of a node, as a placement group of one bundle."""

    node: str
    group: PlacementGroup
    cpus: float
    gpus: int

    def options(self, share: float) -> dict[str, Any]:
        """What a task asks for that takes this share of the device."""
        there = PlacementGroupSchedulingStrategy(self.group)
        return {"num_cpus": self.cpus * share, "num_gpus": self.gpus * share, "scheduling_strategy": there}


def connect(address: str, folder: Path) -> None:
    """Join a cluster, or start one of this machine alone.

    Args:
        address: `local` for that; folder: where what travels is gathered.

    Raises:
        UserError: no cluster answers.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    local = {"include_dashboard": False, "object_store_memory": _STORE_BYTES} if address == "local" else {}
    try:
        _knock(address)
        ray.init(address, runtime_env=_luggage(folder), logging_level=logging.ERROR, log_to_driver=False, **local)
    except (OSError, RuntimeError, ValueError) as error:
        what = "Ray does not start here" if address == "local" else f"the cluster at {address} cannot be reached"
        raise UserError(f"--executor ray: {what}: {reason(error)}") from None


def _knock(address: str) -> None:
    """Whether anybody is there; Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit() and "//" not in address:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_KNOCK_S).close()


def _luggage(folder: Path) -> dict[str, Any]:
    """What travels to each node: this package, and the files of plug-ins that were named."""
    luggage: dict[str, Any] = {"py_modules": [str(Path(grape_bench.__file__).parent)], "env_vars": _ONE_THREAD}
    for origin in named():
        if path := travels(origin):
            (folder / path).parent.mkdir(exist_ok=True)
            shutil.copyfile(origin.path, folder / path)
            luggage["working_dir"] = str(folder)
    return luggage


def travels(origin: Origin) -> str:
    """Where the file of a plug-in lies in the luggage; empty for what is installed."""
    return "" if origin.module or not origin.path else f"{origin.digest}/{Path(origin.path).name}"


def offers(nodes: Iterable[dict[str, Any]], device: str, resources: Resources) -> Iterator[Reserved]:
    """Ask for each device of the wanted kind that has what the suite needs beside it."""
    has = {node["NodeID"]: node["Resources"] for node in nodes if node["Alive"]}
    has = {node: one for node, one in has.items() if all(one.get(key, 0) >= n for key, n in resources.ray.items())}
    gpus = device != "cpu" and (device == "cuda" or any(one.get("GPU") for one in has.values()))
    for node, one in has.items():
        devices = int(one.get("GPU", 0)) if gpus else min(1, int(one.get("CPU", 0)))
        for _ in range(devices):
            bundle = {"CPU": one.get("CPU", 0) / devices, **({"GPU": 1} if gpus else {}), **resources.ray}
            asked = {key: amount for key, amount in bundle.items() if amount}
            group = placement_group([asked], bundle_label_selector=[{"ray.io/node-id": node}])
            yield Reserved(node, group, bundle["CPU"], int(gpus))


def reserve(offers: list[Reserved]) -> list[Reserved]:
    """Those that are ours within a while; the others are given up."""
    asked = {one.group.ready(): one for one in offers}
    ready, late = ray.wait(list(asked), num_returns=len(asked), timeout=_RESERVED_WITHIN_S)
    for one in late:
        remove_placement_group(asked[one].group)
    if not ready:
        raise RuntimeError(
            f"the cluster's devices were held by others for {_RESERVED_WITHIN_S:g} s; a run needs one to itself"
        )
    return [asked[one] for one in ready]


def no_offer(device: str, resources: Resources) -> str:
    """The sentence where no node has what is wanted."""
    wanted = {"cuda": "a GPU", "cpu": "a CPU"}.get(device, "a GPU or a CPU")
    more = "".join(f", {amount:g} of {name}" for name, amount in resources.ray.items())
    return f"no node of the Ray cluster has {wanted}{more}"


def rounded(share: float) -> float:
    """Down to what Ray counts in, so that as many shares as there are fit."""
    return int(share * 10_000) / 10_000


def reason(error: Exception) -> str:
    """The last line of a message that may be a whole traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
