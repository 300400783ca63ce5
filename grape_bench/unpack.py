"""A stranger's bundle, read as far as its parts can be judged: bounded, hashed and parsed, and nothing of it is run."""

import lzma
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from os.path import exists, isfile
from pathlib import Path

from pydantic import ValidationError

from grape_bench.bundle import FORMAT, MANIFEST, RECORDS, REPORT, SUITE, Manifest, sha256
from grape_bench.errors import UserError
from grape_bench.record import Record
from grape_bench.store import reason
from grape_bench.suite import Suite, parse

_ENTRY = re.compile(rf"{MANIFEST}|{SUITE}|{REPORT}|{RECORDS}/[a-z0-9-]{{1,100}}\.jsonl")
_NAME = re.compile(r"[^/\0]{1,60}")  # of a suite, whose file here is looked up by it
_MOST_ENTRIES = 200
_LARGEST, _LONGEST_LINE = 2**28, 2**20  # bytes of all entries together, and of one record
# What zipfile and its decompressors raise of bytes that are none of theirs.
_UNREADABLE = (OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error, lzma.LZMAError)


@dataclass(frozen=True)
class Unpacked:
    """A bundle that could be read.

    Args:
        report: as the bundle has it; records: by the name of their machine.
    """

    manifest: Manifest
    suite: Suite
    report: bytes
    records: dict[str, list[Record]]

    def all(self) -> list[Record]:
        return [one for records in self.records.values() for one in records]


def unpack(path: Path) -> Unpacked:
    """Read a bundle.

    Raises:
        UserError: why it cannot be read, a line for each reason.
    """
    files = _read(path)
    if missing := [name for name in (MANIFEST, SUITE, REPORT) if name not in files]:
        raise UserError(f"it has no {missing[0]}")
    manifest = _manifest(files.pop(MANIFEST))
    _same_files(manifest, files)
    try:
        suite = parse(files.pop(SUITE).decode(), f"{manifest.suite}.yaml")
    except UnicodeDecodeError:
        raise UserError(f"{SUITE} is not UTF-8") from None
    report = files.pop(REPORT)
    records = {Path(name).stem: _records(name, data) for name, data in sorted(files.items())}
    return Unpacked(manifest, suite, report, records)


def _read(path: Path) -> dict[str, bytes]:
    if exists(path) and not isfile(path):  # a pipe would be waited for
        raise UserError("it is no file")
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if len(entries) > _MOST_ENTRIES:
                raise UserError(f"it has {len(entries)} entries; a bundle has at most {_MOST_ENTRIES}")
            names = Counter(entry.filename for entry in entries)
            if wrong := [name for name, count in names.items() if count > 1 or not _ENTRY.fullmatch(name)]:
                raise UserError(f"{wrong[0]!r} does not belong into a bundle, or is there twice")
            return _contents(archive, entries)
    except _UNREADABLE as error:
        raise UserError(f"it is no zip that can be read: {error}") from None


def _contents(archive: zipfile.ZipFile, entries: Sequence[zipfile.ZipInfo]) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    left = _LARGEST
    for entry in entries:
        with archive.open(entry) as file:
            data = file.read(left + 1)  # the size that the zip states is a stranger's word
        left -= len(data)
        if left < 0:
            raise UserError(f"it holds more than {_LARGEST // 2**20} MiB")
        files[entry.filename] = data
    return files


def _manifest(data: bytes) -> Manifest:
    try:
        manifest = Manifest.model_validate_json(data)
    except ValidationError as error:
        raise UserError(f"{MANIFEST}: {reason(error)}") from None
    if manifest.format != FORMAT:
        raise UserError(f"{MANIFEST}: format {manifest.format} is not {FORMAT}, the one that is read here")
    if not _NAME.fullmatch(manifest.suite):
        raise UserError(f"{MANIFEST}: suite: a name has 1 to 60 characters, and no slash; got {manifest.suite[:60]!r}")
    return manifest


def _same_files(manifest: Manifest, files: dict[str, bytes]) -> None:
    if unlike := sorted(manifest.files.keys() ^ files.keys()):
        raise UserError(f"{unlike[0]} is in the bundle and not in its manifest, or the other way round")
    for name, data in files.items():
        if sha256(data) != manifest.files[name]:
            raise UserError(f"{name} is not the file that the manifest names: its sha256 differs")


def _records(name: str, data: bytes) -> list[Record]:
    return [_record(name, *one) for one in enumerate(data.removesuffix(b"\n").split(b"\n"), 1)]


def _record(name: str, number: int, line: bytes) -> Record:
    if len(line) > _LONGEST_LINE:
        raise UserError(f"{name}:{number}: a line of {len(line) // 1024} KiB; a record has at most 1024")
    try:
        return Record.model_validate_json(line)
    except ValidationError as error:
        raise UserError(f"{name}:{number}: no record: {reason(error)}") from None
