"""Commands in this process, each within two seconds and without a traceback, whatever they are given."""

import contextlib
import io
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings

from grape_bench import cli

T = TypeVar("T")
LIMIT_S = 2.0  # of CPU time, so that a busy machine changes nothing
FORBIDDEN = ("os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "os.fork", "os.remove", "socket.connect")

settings.register_profile(
    "hostile",
    derandomize=bool(os.environ.get("CI")),
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


class Sandbox:
    """Calls that may fail with a sentence, and with nothing else."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.acts: list[str] = []
        self.inside = False
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.inside and event in FORBIDDEN:
            self.acts.append(f"{event} {arguments}")

    def call(self, function: Callable[[], T]) -> T:
        """The result of a call that is quick and runs no program."""
        try:
            result, spent = self._timed(function)
            if spent >= LIMIT_S:  # a busy neighbour doubles CPU time as well
                result, spent = self._timed(function)
            assert spent < LIMIT_S, f"it took {spent:.1f} s"
            return result
        finally:
            assert not self.acts

    def _timed(self, function: Callable[[], T]) -> tuple[T, float]:
        start, self.inside = time.process_time(), True
        try:
            return function(), time.process_time() - start
        finally:
            self.inside = False

    def command(self, *words: str) -> tuple[int, str, str]:
        """Exit code, output and errors, written as a terminal takes them."""
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", errors) for errors in ("strict", "backslashreplace"))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = self.call(lambda: cli.main(words))
            out.flush()
            err.flush()
        texts = [one.buffer.getvalue().decode() for one in (out, err)]
        assert "Traceback" not in texts[1]
        assert code == 0 or any(text.strip() for text in texts), "a failure has its sentence"
        return code, *texts


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    folder, before = tmp_path_factory.mktemp("sandbox"), Path.cwd()
    os.chdir(folder)
    yield Sandbox(folder)
    os.chdir(before)
