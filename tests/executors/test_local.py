"""A box of GPUs that is made up: what its places are, and what a worker sees of it."""

import os
import signal
from collections.abc import Callable
from multiprocessing import forkserver
from typing import Any

import pytest
import torch

from grape_bench.cell import Block, CostCell
from grape_bench.environment import Environment
from grape_bench.executors import _processes
from grape_bench.executors.local import Local
from grape_bench.resources import Resources, slots
from grape_bench.worker import Finished, Note, Protocol

BLOCK = Block((CostCell(metric="forward_ms", length=16, encoding="rope"),))


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch, environment: Environment) -> Callable[..., None]:
    """Put some GPUs into this machine, by their names."""

    def put(*names: str) -> None:
        current = [0]
        monkeypatch.setattr(torch.cuda, "device_count", lambda: len(names))
        monkeypatch.setattr(torch.cuda, "set_device", lambda index: current.__setitem__(0, index))
        monkeypatch.setattr(_processes, "resolve", lambda device: "cpu" if device == "cpu" else "cuda")

        def observe(device: str, threads: int) -> Environment:
            name = "cpu" if device == "cpu" else names[current[0]]
            return environment.model_copy(update={"device": name, "threads": threads})

        monkeypatch.setattr(_processes, "observe", observe)

    return put


def described(protocol: Protocol) -> list[tuple[str, str]]:
    return [(name, at.device) for name, at in _processes._devices(protocol)]


def test_each_gpu_is_a_device_of_its_own_kind(monkeypatch: pytest.MonkeyPatch, gpus: Callable[..., None]) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    gpus("A100", "A100", "H200")
    assert described(Protocol()) == [("0", "A100"), ("1", "A100"), ("2", "H200")]
    assert described(Protocol(device="cpu")) == [("cpu", "cpu")]


def test_a_box_that_shows_some_of_its_gpus_has_these(
    monkeypatch: pytest.MonkeyPatch, gpus: Callable[..., None]
) -> None:
    """A scheduler names them by number or by identity; torch counts those that it can use from 0."""
    gpus("A100", "H200")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, GPU-8f1c")
    assert described(Protocol()) == [("3", "A100"), ("GPU-8f1c", "H200")]


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_to_all_processes_leaves_those_that_fork_and_measure(name: str) -> None:
    processes = _processes.Processes()
    try:
        ticket = processes.start(BLOCK, Protocol(device="cpu"), "cpu")
        for pid in (forkserver._forkserver._forkserver_pid, processes._workers[ticket].process.pid):
            os.kill(pid, signal.Signals[name])
        second = processes.start(BLOCK, Protocol(device="cpu"), "cpu")
        ended: dict[int, object] = {}
        while len(ended) < 2:
            ended |= {one: event for one, event in processes.wait(60.0) if not isinstance(event, Note)}
        assert {one: type(event) for one, event in ended.items()} == {ticket: Finished, second: Finished}
    finally:
        processes.close()


def test_cores_are_divided_among_gpus(monkeypatch: pytest.MonkeyPatch, environment: Environment) -> None:
    h200 = environment.model_copy(update={"device": "H200"})
    local = Local()
    monkeypatch.setattr(local._processes, "devices", lambda protocol: [(str(index), h200) for index in range(8)])
    monkeypatch.setattr("grape_bench.executors.local._cores", lambda: 24)
    assert [place.slots for place in local.places(Protocol(), Resources())] == [3] * 8
    assert [place.slots for place in local.places(Protocol(), Resources(cpus=0.5))] == [4] * 8
    local.close()


@pytest.mark.parametrize(
    ("device", "cores", "resources", "expected"),
    [
        ("cpu", 16, {}, 16),
        ("cpu", 16, {"cpus": 3}, 5),
        ("cpu", 2, {"cpus": 4}, 1),
        ("cpu", 16, {"gpus": 1.0}, 16),
        ("H200", 16, {}, 4),
        ("H200", 2, {}, 2),
        ("H200", 0.5, {}, 1),
        ("H200", 16, {"gpus": 0.1}, 10),
        ("H200", 16, {"gpus": 0.5, "cpus": 4}, 2),
        ("H200", 16, {"gpus": 1}, 1),
    ],
)
def test_trainings_share_a_device_by_what_one_takes(
    device: str, cores: float, resources: dict[str, Any], expected: int
) -> None:
    assert slots(device, cores, Resources(**resources)) == expected


@pytest.mark.parametrize(("device", "seen"), [("5", "5"), ("cpu", "0,1")])
def test_a_worker_sees_its_gpu_alone(monkeypatch: pytest.MonkeyPatch, device: str, seen: str) -> None:
    """Before it measures anything, since CUDA reads the variable once."""
    told: list[str | None] = []
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setattr(_processes, "_isolate", lambda log: None)
    monkeypatch.setattr(_processes, "measure", lambda *_: os.environ.get("CUDA_VISIBLE_DEVICES"))

    class Pipe:
        send, close = staticmethod(told.append), staticmethod(lambda: None)

    _processes._serve(Pipe(), BLOCK, Protocol(), device, "none.log")  # type: ignore[arg-type]
    assert told == [seen]


def test_a_real_box_has_a_place_for_each_device() -> None:
    local = Local()
    (place,) = local.places(Protocol(device="cpu"), Resources())
    local.close()
    assert (place.name, place.environment.device) == ("cpu", "cpu")
    assert place.slots == len(os.sched_getaffinity(0))


def test_what_the_machine_lacks_is_said() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    local = Local()
    with pytest.raises(RuntimeError, match="torch finds no CUDA device"):
        local.places(Protocol(device="cuda"), Resources())
    local.close()
