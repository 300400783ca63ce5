"""Local: each block in a fresh process of this machine, and where there are GPUs, on one of them."""

import os

from grape_bench.cell import Block
from grape_bench.executors import Event, Executor
from grape_bench.executors._processes import Processes
from grape_bench.placing import Place
from grape_bench.resources import Resources, slots
from grape_bench.worker import Protocol


class Local(Executor):
    """The machine's cores are one place; with GPUs, each of these is one, with its part of the cores."""

    def __init__(self) -> None:
        self._processes = Processes()

    def places(self, protocol: Protocol, resources: Resources) -> tuple[Place, ...]:
        found = self._processes.devices(protocol)
        cores = _cores() / len(found)
        return tuple(Place(name, at, slots(at.device, cores, resources)) for name, at in found)

    def start(self, block: Block, protocol: Protocol, place: Place) -> int:
        return self._processes.start(block, protocol, place.name)

    def wait(self, seconds: float) -> list[tuple[int, Event]]:
        return self._processes.wait(seconds)

    def kill(self, ticket: int) -> None:
        self._processes.kill(ticket)

    def close(self) -> None:
        self._processes.close()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


PLUGIN = Local
