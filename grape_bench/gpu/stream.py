"""The only file that touches device events and graphs of what is timed: a GPU's queue of work, through torch."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import torch

from grape_bench.gpu.ways import CaptureError
from grape_bench.timing import Operation

_REHEARSALS = 3  # on the side stream, before a capture


class TorchStream:
    """The current stream of the current CUDA device.

    Graphs share one pool of memory, since no two of them run at a time and none is asked for what it made.
    """

    def __init__(self) -> None:
        size = 2 * torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size
        self._waste = torch.empty(size, dtype=torch.uint8, device="cuda")
        self._side = torch.cuda.Stream()
        self._pool = torch.cuda.graph_pool_handle()
        self.flushed_mib = size / 2**20
        self._anchor = self.capture(self.flush, 1)  # the pool lives as long as a graph in it

    def flush(self) -> None:
        self._waste.zero_()

    def mark(self) -> torch.cuda.Event:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def wait(self) -> None:
        torch.cuda.synchronize()

    def capture(self, call: Operation, times: int) -> Operation:
        """Record so many calls, after rehearsals on a side stream.

        Raises:
            CaptureError: a call waits for the device, or needs more memory than is left beside what plain calls hold.
        """
        graph = torch.cuda.CUDAGraph()
        try:
            self._rehearse(call)
            current = torch.cuda.stream(torch.cuda.current_stream())  # a capture that fails leaves its own stream there
            with current, torch.cuda.graph(graph, pool=self._pool, stream=self._side):
                for _ in range(times):
                    call()
        except RuntimeError as error:
            self._close_pool()
            raise CaptureError(_first_reason(error)) from None
        return graph.replay

    def _rehearse(self, call: Operation) -> None:
        self._side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._side), _no_waiting():
            for _ in range(_REHEARSALS):
                call()
        torch.cuda.current_stream().wait_stream(self._side)

    def _close_pool(self) -> None:
        # A capture whose end fails leaves the pool open, and then no memory can be given back any more.
        with suppress(RuntimeError):  # it was closed
            torch._C._cuda_endAllocateToPool(torch.cuda.current_device(), self._pool)


@contextmanager
def _no_waiting() -> Iterator[None]:
    """Let torch raise where the host would wait for the device.

    A capture that meets such a wait fails too, and leaves torch's random numbers as if it still went on.
    """
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


def _first_reason(error: BaseException) -> str:
    """The first line of what began a chain of errors: the end of a broken capture only says that it was broken."""
    while error.__context__ is not None:
        error = error.__context__
    return str(error).partition("\n")[0]
