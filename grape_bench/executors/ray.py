"""Ray: each block is a task of a Ray cluster, on a device that the run has reserved."""

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import OutOfMemoryError, RayError
from ray.util.placement_group import remove_placement_group

from grape_bench import timing
from grape_bench.cell import Block
from grape_bench.environment import Environment, checkout
from grape_bench.executors import Died, Event, Executor
from grape_bench.executors._cluster import Reserved, connect, no_offer, offers, reason, reserve, rounded, travels
from grape_bench.executors._node import answer, mind, observe
from grape_bench.placing import Place
from grape_bench.resources import Resources, slots
from grape_bench.worker import Finished, Note, Protocol

_LOOK_S = 2.0  # between two looks at which nodes are alive


class Ray(Executor):
    """The GPUs of a cluster, or where it has none or none are wanted, the cores of each of its nodes.

    Args:
        address: of a cluster; None for that of RAY_ADDRESS, or where that is not set, a cluster of this machine alone
            that ends with the run.

    Raises:
        UserError: no cluster answers.
    """

    needs = "ray"

    def __init__(self, *, address: str | None = None):
        self._folder = tempfile.TemporaryDirectory(prefix="grape-bench-")
        self._reserved: dict[str, Reserved] = {}
        self._streams: dict[int, Any] = {}
        self._where: dict[int, Reserved] = {}
        self._lost: dict[int, tuple[Died, Any]] = {}  # not told yet, with a question to the node
        self._tickets, self._device = 0, "cpu"
        self._living, self._looked = frozenset[str](), 0.0
        connect(address or os.environ.get("RAY_ADDRESS") or "local", Path(self._folder.name))

    def places(self, protocol: Protocol, resources: Resources) -> tuple[Place, ...]:
        asked = list(offers(ray.nodes(), protocol.device, resources))
        if not asked:
            raise RuntimeError(no_offer(protocol.device, resources))
        self._look()
        self._device = "cuda" if asked[0].gpus else "cpu"
        self._reserved = {one.group.id.hex(): one for one in reserve(asked)}
        found = zip(self._reserved.items(), self._observed(protocol), strict=True)
        return tuple(Place(name, at, slots(at.device, one.cpus, resources)) for (name, one), at in found)

    def alive(self, place: Place) -> bool:
        return self._reserved[place.name].node in self._living

    def start(self, block: Block, protocol: Protocol, place: Place) -> int:
        reserved = self._reserved[place.name]
        share = 1.0 if block.exclusive else rounded(1 / place.slots)
        task = ray.remote(num_returns="streaming", max_retries=0, max_calls=0)(mind)
        self._tickets += 1
        self._streams[self._tickets] = task.options(**reserved.options(share)).remote(block, self._there(protocol))
        self._where[self._tickets] = reserved
        return self._tickets

    def wait(self, seconds: float) -> list[tuple[int, Event]]:
        tickets = {stream: ticket for ticket, stream in self._streams.items()}
        told: list[Any] = []
        if tickets:
            told, _ = ray.wait(list(tickets), num_returns=1, timeout=seconds)
        else:  # only losses are left to tell of
            timing.pause(seconds)
        events: list[tuple[int, Event]] = []
        for ticket, event in ((tickets[stream], self._event(stream)) for stream in told):
            if not isinstance(event, Note):
                del self._streams[ticket]
            if isinstance(event, Died) and event.lost:
                self._lost[ticket] = event, self._ask(ticket)
            else:
                events.append((ticket, event))
        return [*events, *self._losses()]

    def kill(self, ticket: int) -> None:
        self._lost.pop(ticket, None)
        if stream := self._streams.pop(ticket, None):
            ray.cancel(stream)  # the task ends its process as it goes

    def close(self) -> None:
        for ticket in list(self._streams):
            self.kill(ticket)
        for reserved in self._reserved.values():
            remove_placement_group(reserved.group)
        ray.shutdown()
        self._folder.cleanup()

    def _observed(self, protocol: Protocol) -> list[Environment]:
        look = ray.remote(max_retries=0, max_calls=0)(observe)
        looks = [look.options(**one.options(1.0)).remote(self._there(protocol)) for one in self._reserved.values()]
        try:
            return [self._described(one) for one in ray.get(looks)]
        except RayError as error:
            raise RuntimeError(f"a node of the Ray cluster cannot be used: {reason(error)}") from None

    def _losses(self) -> list[tuple[int, Event]]:
        """Blocks that were lost, once their node has answered or has left: none is put on a node that is going."""
        if timing.seconds() - self._looked < _LOOK_S:
            return []
        self._look()
        for ticket in [one for one in self._streams if self._gone(one)]:  # their streams would wait for ever
            del self._streams[ticket]
            self._lost[ticket] = Died("its node left the cluster", killed=False, lost=True), None
        told = [(ticket, died) for ticket, (died, question) in self._lost.items() if self._settled(ticket, question)]
        for ticket, _ in told:
            del self._lost[ticket]
        return list(told)

    def _settled(self, ticket: int, question: Any) -> bool:
        if self._gone(ticket):
            return True
        if not ray.wait([question], timeout=0)[0]:
            return False
        try:
            return bool(ray.get(question))
        except RayError:
            self._lost[ticket] = self._lost[ticket][0], self._ask(ticket)
            return False

    def _ask(self, ticket: int) -> Any:
        return ray.remote(max_retries=0)(answer).options(**self._where[ticket].options(0.0)).remote()

    def _gone(self, ticket: int) -> bool:
        return self._where[ticket].node not in self._living

    def _look(self) -> None:
        self._living = frozenset(node["NodeID"] for node in ray.nodes() if node["Alive"])
        self._looked = timing.seconds()

    def _event(self, stream: Any) -> Event:
        try:
            event: Event = ray.get(next(stream))
        except StopIteration:
            return Died("the task ended without a word", killed=False, lost=True)
        except OutOfMemoryError as error:
            return Died(reason(error), killed=True, oom=True, lost=True)
        except RayError as error:
            return Died(reason(error), killed=False, lost=True)
        return replace(event, environment=self._described(event.environment)) if isinstance(event, Finished) else event

    def _there(self, protocol: Protocol) -> Protocol:
        """A protocol as it is on a node, with files of plug-ins where they travel to."""
        plugins = tuple(replace(one, path=travels(one)) if travels(one) else one for one in protocol.plugins)
        folder = os.path.abspath(protocol.checkpoints) if protocol.checkpoints else None
        return replace(protocol, device=self._device, plugins=plugins, checkpoints=folder)

    def _described(self, environment: Environment) -> Environment:
        """With the commit of the code, which is here: there it travelled without its history."""
        return environment.model_copy(update=checkout())


PLUGIN = Ray
