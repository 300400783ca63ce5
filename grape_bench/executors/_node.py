"""What runs on a node of a cluster: it minds the fresh process in which a block is measured."""

import functools
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from grape_bench import timing
from grape_bench.cell import Block
from grape_bench.environment import Environment
from grape_bench.executors import Event
from grape_bench.executors._processes import CPU, Processes
from grape_bench.worker import Note, Protocol

_PAUSE_S = 0.5  # between two words to the driver: one a sample would cost more than the sample


def observe(protocol: Protocol) -> Environment:
    """The device that this task holds."""
    ((_, environment),) = _processes().devices(_here(protocol))
    return environment


def answer() -> bool:
    """A sign of life."""
    return True


def mind(block: Block, protocol: Protocol) -> Iterator[Event]:
    """Measure a block on the device that this task holds, and pass on what is told.

    The block's process is a child of this one, free of the cluster's threads, whose CPU time would count as its own.
    """
    device = CPU if protocol.device == CPU else os.environ["CUDA_VISIBLE_DEVICES"]
    processes = _processes()
    ticket: int | None = processes.start(block, _here(protocol), device)
    try:
        while ticket is not None:
            for event in _told(processes):
                ticket = ticket if isinstance(event, Note) else None
                yield event
    finally:
        if ticket is not None:
            processes.kill(ticket)


@functools.cache
def _processes() -> Processes:
    """Of this process, which minds one block after another: its server imports torch once."""
    # Each child would run this process's main module anew: the cluster's, half a second of imports of no use to it.
    vars(sys.modules["__main__"]).pop("__file__", None)
    return Processes()


def _here(protocol: Protocol) -> Protocol:
    """Files of plug-ins lie in the working directory, and checkpoints where the results are shared between nodes."""
    folder = protocol.checkpoints if protocol.checkpoints and Path(protocol.checkpoints).parent.is_dir() else None
    plugins = tuple(replace(one, path=os.path.abspath(one.path)) if one.path else one for one in protocol.plugins)
    return replace(protocol, checkpoints=folder, plugins=plugins)


def _told(processes: Processes) -> list[Event]:
    """The last note of a while, and the end if it comes."""
    until, notes = timing.seconds() + _PAUSE_S, list[Event]()
    while (left := until - timing.seconds()) > 0:
        for _, event in processes.wait(left):
            if not isinstance(event, Note):
                return [*notes, event]
            notes = [event]
    return notes
