"""Signals that ask a command to end: Ctrl-C, a scheduler's SIGTERM, and the SIGHUP of a closed terminal."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_POLITE = ("SIGINT", "SIGTERM", "SIGHUP")  # the last is unknown to some systems
_Handler = Callable[[int, FrameType | None], None]


@contextmanager
def raised() -> Iterator[None]:
    """SIGTERM and SIGHUP raise KeyboardInterrupt within, as Ctrl-C does."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    with _handling(_POLITE[1:], stop):
        yield


@contextmanager
def deaf() -> Iterator[None]:
    """Processes that are started within never hear such signals, nor do those that they fork.

    This process hears all the same, at the latest afterwards: signals are blocked in this thread, and not ignored.
    """
    known = [signal.Signals[name] for name in _POLITE if hasattr(signal, name)]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, known)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def noted() -> Iterator[list[str]]:
    """Collect the names of such signals within, so that what is being written is finished.

    The caller looks at the list between two steps. A second signal raises KeyboardInterrupt: somebody is in a hurry.
    """
    names: list[str] = []

    def note(number: int, frame: FrameType | None) -> None:
        if names:
            raise KeyboardInterrupt(signal.Signals(number).name)
        names.append(signal.Signals(number).name)

    with _handling(_POLITE, note):
        yield names


@contextmanager
def _handling(names: tuple[str, ...], handler: _Handler) -> Iterator[None]:
    """Handle some signals. What is ignored, as SIGHUP is below nohup, stays so; only the main thread may handle any."""
    known = [signal.Signals[name] for name in names if hasattr(signal, name)]
    heard = [one for one in known if signal.getsignal(one) not in (signal.SIG_IGN, None)]
    if threading.current_thread() is not threading.main_thread():
        heard = []
    before = {one: signal.signal(one, handler) for one in heard}
    try:
        yield
    finally:
        for one, old in before.items():
            signal.signal(one, old)
