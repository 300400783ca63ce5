"""The contract of an executor: it starts blocks in fresh processes and passes on what they tell.

A file of this folder is an executor of its name; its last line is `PLUGIN = Class`.
"""

from dataclasses import dataclass

from grape_bench.cell import Block
from grape_bench.environment import Environment
from grape_bench.worker import Finished, Note, Protocol


@dataclass(frozen=True)
class Died:
    """A process ended before its block did.

    Args:
        killed: by a signal that no fault of its own explains (SIGKILL), so that memory may be the cause.
        oom: the kernel's out-of-memory killer was at work.
    """

    message: str
    killed: bool
    oom: bool = False


Event = Note | Finished | Died


class Executor:
    """Runs blocks somewhere, several at a time if it is told to."""

    def observe(self, protocol: Protocol) -> Environment:
        """The environment that blocks will run in."""
        raise NotImplementedError

    def start(self, block: Block, protocol: Protocol) -> int:
        """Begin a block in a fresh process, and return a ticket for it."""
        raise NotImplementedError

    def wait(self, seconds: float) -> list[tuple[int, Event]]:
        """What running blocks told, after at most so many seconds. A ticket is void after Finished or Died."""
        raise NotImplementedError

    def kill(self, ticket: int) -> None:
        """End a block's process at once; nothing more comes of its ticket."""
        raise NotImplementedError

    def close(self) -> None:
        """End all processes."""
        raise NotImplementedError
