"""The only reader and writer of results/: JSON lines, appended and synced, one file a machine and suite."""

import glob
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from io import FileIO
from itertools import count
from pathlib import Path
from typing import Annotated, TypeVar

from filelock import FileLock, Timeout
from pydantic import Field, TypeAdapter, ValidationError

from grape_bench.cell import Frozen
from grape_bench.errors import UserError
from grape_bench.record import Record, RunStart
from grape_bench.verification import Verification

LONGEST_LINE = 2**20  # bytes of one record; ours have some thousands
LAWS = "laws.jsonl"  # beside the machines' folders
_LINE: TypeAdapter[Record | RunStart] = TypeAdapter(Annotated[Record | RunStart, Field(discriminator="kind")])
_VERIFICATION: TypeAdapter[Verification] = TypeAdapter(Verification)
Line = TypeVar("Line")


class DiskError(UserError):
    """A record cannot be written now, as on a full disk; what was recorded before stands."""


class Store:
    """The records under one folder, `results/<machine>/<suite>.jsonl`.

    Args:
        folder: such as `results`.
    """

    def __init__(self, folder: Path):
        self.folder = folder

    def path(self, machine: str, suite: str) -> Path:
        """The file of a suite's records on one machine, whether there are any or not."""
        return self.folder / machine / f"{suite}.jsonl"

    def suites(self) -> list[str]:
        """Names of the suites that have records here."""
        return sorted({path.stem for path in self.folder.glob("*/*.jsonl")})

    def lines(self, suite: str, machine: str = "*") -> Iterator[Record | RunStart]:
        """All that was written for a suite, oldest first, machine by machine.

        Raises:
            UserError: a line is no record; it names file and line. A last line cut short by a crash is passed over.
        """
        for path in sorted(self.folder.glob(f"{machine}/{glob.escape(suite)}.jsonl")):
            yield from _read(path, _LINE)

    def records(self, suite: str, machine: str = "*") -> list[Record]:
        """All records of a suite, oldest first, machine by machine."""
        return [line for line in self.lines(suite, machine) if isinstance(line, Record)]

    def verifications(self) -> list[Verification]:
        """What was found of encodings' laws, oldest first.

        Raises:
            UserError: a line is none; it names file and line.
        """
        path = self.folder / LAWS
        return list(_read(path, _VERIFICATION)) if path.exists() else []

    def keep(self, verifications: Iterable[Verification]) -> None:
        """Write down what was found of some encodings' laws.

        Raises:
            UserError: the folder cannot be written, or another process writes to it.
        """
        with self._holding(self.folder / LAWS) as writer:
            writer.append(verifications)

    @contextmanager
    def writing(self, machine: str, suite: str) -> Iterator["Writer"]:
        """Hold the only writer of one file.

        Raises:
            UserError: another run writes to it now, or the folder cannot be written.
        """
        with self._holding(self.path(machine, suite)) as writer:
            yield writer

    @contextmanager
    def _holding(self, path: Path) -> Iterator["Writer"]:
        with ExitStack() as held:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                held.enter_context(FileLock(path.with_suffix(".lock")).acquire(timeout=0))
                writer = Writer(path)
            except Timeout:
                raise UserError(
                    f"another run writes to {path} now; wait for it, or name another folder with --results"
                ) from None
            except OSError as error:
                raise UserError(
                    f"{error.filename or path} cannot be written: {error.strerror}; name another folder with --results"
                ) from None
            yield writer


class Writer:
    """Appends whole lines to one file; each append is on the disk when it returns."""

    def __init__(self, path: Path):
        self.path = path
        _drop_torn_end(path)

    def append(self, lines: Iterable[Frozen]) -> None:
        """Write some lines in one go, or none of them.

        Raises:
            DiskError: they cannot be written.
        """
        text = "".join(line.model_dump_json(by_alias=True) + "\n" for line in lines)
        try:
            with self.path.open("ab", buffering=0) as file:
                _write(file, text.encode())
        except OSError as error:
            raise DiskError(f"{self.path} cannot be written: {error.strerror}") from None


def _write(file: FileIO, data: bytes) -> None:
    size, left = file.tell(), memoryview(data)
    try:
        while left:
            left = left[file.write(left) :]
        os.fsync(file.fileno())
    except OSError:
        file.truncate(size)  # a part of a block must not count
        raise


def _read(path: Path, form: TypeAdapter[Line]) -> Iterator[Line]:
    try:
        require_plain(path)
        with path.open("rb") as file:
            for number in count(1):
                if not (line := file.readline(LONGEST_LINE)).endswith(b"\n"):
                    if len(line) == LONGEST_LINE:
                        raise UserError(f"{path}:{number}: a line of more than {LONGEST_LINE // 1024} KiB is no record")
                    return  # also where it reads as whole: the next writer drops it
                yield _parse(line, form, f"{path}:{number}")
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None


def require_plain(path: Path) -> None:
    """Refuse what cannot be read as a file.

    Raises:
        UserError: it is a folder, a pipe or a device.
    """
    if not path.is_file():  # a pipe would be waited for
        raise UserError(f"{path} is {'a folder' if path.is_dir() else 'no plain file'}; records are in plain files")


def _parse(line: bytes, form: TypeAdapter[Line], place: str) -> Line:
    try:
        return form.validate_json(line)
    except ValidationError as error:
        raise UserError(f"{place}: no record of this version of grape-bench: {reason(error)}") from None


def reason(error: ValidationError) -> str:
    """The first thing that is wrong, with the key where it is."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(one) for one in first["loc"])
    return f"{place}: {first['msg']}" if place else str(first["msg"])


def _drop_torn_end(path: Path) -> None:
    if not path.exists():
        return
    require_plain(path)
    with path.open("rb+") as file:
        data = file.read()
        whole = data.rfind(b"\n") + 1
        if whole != len(data):
            file.truncate(whole)
