"""The contract of an executor: it starts blocks in fresh processes and passes on what they tell.

A file of this folder is an executor of its name; its last line is `PLUGIN = Class`.
"""

from dataclasses import dataclass
from typing import ClassVar

from grape_bench.cell import Block
from grape_bench.placing import Place
from grape_bench.resources import Resources
from grape_bench.worker import Finished, Note, Protocol


@dataclass(frozen=True)
class Died:
    """A process ended before its block did.

    Args:
        killed: by a signal that no fault of its own explains (SIGKILL), so that memory may be the cause.
        oom: the kernel's out-of-memory killer was at work.
        lost: the machine went, or what minds the process there: the block may do well elsewhere.
    """

    message: str
    killed: bool
    oom: bool = False
    lost: bool = False


Event = Note | Finished | Died


class Executor:
    """Runs blocks somewhere, several at a time if it is told to.

    Attributes:
        needs: a package that it imports and that comes with the extra of its name only.
    """

    needs: ClassVar[str] = ""

    def places(self, protocol: Protocol, resources: Resources) -> tuple[Place, ...]:
        """The devices that blocks may be put on, those of one kind with one machine in their environments.

        Raises:
            RuntimeError: there is none of the kind that the protocol asks for.
        """
        raise NotImplementedError

    def alive(self, place: Place) -> bool:
        """Whether blocks may still be put there."""
        return True

    def start(self, block: Block, protocol: Protocol, place: Place) -> int:
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
