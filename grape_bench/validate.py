"""Is a bundle what it says? It comes from a stranger, so nothing in it is believed, and nothing of it is run."""

import lzma
import re
import zipfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from grape_bench.bundle import FORMAT, MANIFEST, RECORDS, REPORT, SUITE, Manifest, differences, report, sha256
from grape_bench.cell import AccuracyCell
from grape_bench.errors import UserError
from grape_bench.record import SCHEMA, AccuracyReading, MemoryReading, Record, TimeReading
from grape_bench.store import reason
from grape_bench.suite import Suite, expand, parse

_ENTRY = re.compile(rf"{MANIFEST}|{SUITE}|{REPORT}|{RECORDS}/[a-z0-9-]{{1,100}}\.jsonl")
_MOST_ENTRIES = 200
# What zipfile and its decompressors raise of bytes that are none of theirs.
_UNREADABLE = (OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error, lzma.LZMAError)
_LARGEST, _LONGEST_LINE = 2**28, 2**20  # bytes of one entry, and of one record
_MOST_REASONS = 20  # of one kind of fault


@dataclass
class Opened:
    """A bundle that could be read.

    Args:
        records: by the name of their machine.
    """

    manifest: Manifest
    files: dict[str, bytes]
    suite: Suite
    records: dict[str, list[Record]] = field(default_factory=dict)

    def all(self) -> list[Record]:
        return [one for records in self.records.values() for one in records]


def validate(path: Path) -> list[str]:
    """Why a bundle is refused, in a sentence each; empty where it is accepted."""
    try:
        opened = _open(path)
    except UserError as error:
        return str(error).splitlines()
    faults = [sentence for check in CHECKS for sentence in _some(check(opened))]
    return faults or _some(_numbers(opened))  # what is out of range has no report


def _open(path: Path) -> Opened:
    files = _read(path)
    if missing := [name for name in (MANIFEST, SUITE, REPORT) if name not in files]:
        raise UserError(f"it has no {missing[0]}")
    try:
        manifest = Manifest.model_validate_json(files.pop(MANIFEST))
    except ValidationError as error:
        raise UserError(f"{MANIFEST}: {reason(error)}") from None
    if manifest.format != FORMAT:
        raise UserError(f"{MANIFEST}: format {manifest.format} is not {FORMAT}, the one that is read here")
    _same_files(manifest, files)
    try:
        suite = parse(files[SUITE].decode(), f"{manifest.suite}.yaml")
    except UnicodeDecodeError:
        raise UserError(f"{SUITE} is not UTF-8") from None
    opened = Opened(manifest, files, suite)
    for name in sorted(files):
        if name.startswith(f"{RECORDS}/"):
            opened.records[Path(name).stem] = [_record(name, *one) for one in enumerate(_lines(files[name]), 1)]
    return opened


def _read(path: Path) -> dict[str, bytes]:
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise UserError("it is no file")
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if len(entries) > _MOST_ENTRIES:
                raise UserError(f"it has {len(entries)} entries; a bundle has at most {_MOST_ENTRIES}")
            names = Counter(entry.filename for entry in entries)
            if wrong := [name for name, count in names.items() if count > 1 or not _ENTRY.fullmatch(name)]:
                raise UserError(f"{wrong[0]!r} does not belong into a bundle, or is there twice")
            return {entry.filename: _content(archive, entry) for entry in entries}
    except _UNREADABLE as error:
        raise UserError(f"it is no zip that can be read: {error}") from None


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    with archive.open(entry) as file:
        data = file.read(_LARGEST + 1)  # the size that the zip states is a stranger's word
    if len(data) > _LARGEST:
        raise UserError(f"{entry.filename} holds more than {_LARGEST // 2**20} MiB")
    return data


def _same_files(manifest: Manifest, files: dict[str, bytes]) -> None:
    if unlike := sorted(manifest.files.keys() ^ files.keys()):
        raise UserError(f"{unlike[0]} is in the bundle and not in its manifest, or the other way round")
    for name, data in files.items():
        if sha256(data) != manifest.files[name]:
            raise UserError(f"{name} is not the file that the manifest names: its sha256 differs")


def _lines(data: bytes) -> list[bytes]:
    return data.removesuffix(b"\n").split(b"\n")


def _record(name: str, number: int, line: bytes) -> Record:
    if len(line) > _LONGEST_LINE:
        raise UserError(f"{name}:{number}: a line of {len(line) // 1024} KiB; a record has at most 1024")
    try:
        return Record.model_validate_json(line)
    except ValidationError as error:
        raise UserError(f"{name}:{number}: no record: {reason(error)}") from None


def _some(sentences: Iterable[str]) -> list[str]:
    found = list(dict.fromkeys(sentences))
    left = len(found) - _MOST_REASONS
    return found if left <= 0 else [*found[:_MOST_REASONS], f"and {left} more like the last one"]


def _division(opened: Opened) -> Iterator[str]:
    changes, stated = differences(opened.suite), opened.manifest.changes
    if opened.manifest.division == "closed" and changes:
        yield f"it claims the closed division, and {'; '.join(changes)}"
    elif opened.manifest.division == "open" and changes != stated:
        yield f"it states other changes to its suite than there are: {'; '.join(changes) or 'none'}"


def _cells(opened: Opened) -> Iterator[str]:
    asked = {cell.id for cell in expand(opened.suite)}
    for one in opened.all():
        if one.id != one.cell.id:
            yield f"record {one.id}: its id is not that of its cell, {one.cell.id}"
        elif one.id not in asked:
            versions = " ".join(one.cell.versions)
            yield f"record {one.id}: {one.cell.encoding} with versions {versions} is no cell of the suite"
        if one.suite != opened.suite.name:
            yield f"record {one.id}: it is of the suite {one.suite}"
        if one.schema_ > SCHEMA:
            yield f"record {one.id}: schema {one.schema_} is newer than {SCHEMA}"


def _machines(opened: Opened) -> Iterator[str]:
    for machine, records in opened.records.items():
        for one in records:
            if one.environment.machine != machine:
                yield f"record {one.id}: it is of the machine {one.environment.machine}, in the file of {machine}"


def _duplicates(opened: Opened) -> Iterator[str]:
    seen = Counter((one.block_run, one.id, one.role) for one in opened.all() if one.status == "ok")
    for (run, cell, role), count in seen.items():
        if count > 1:
            yield f"cell {cell}: {count} readings as {role} in the one block run {run}"


def _seeds(opened: Opened) -> Iterator[str]:
    """Equal seeds saw equal data, different seeds different data, and a training is there once."""
    seeds: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    data: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
    curves: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
    for one in opened.all():
        if isinstance(one.cell, AccuracyCell) and isinstance(one.reading, AccuracyReading):
            seeds[one.cell.setting, one.reading.data_sha].add(one.cell.seed)
            data[one.cell.setting, one.cell.seed].add(one.reading.data_sha)
            curves[one.cell.setting, one.cell.encoding, str(one.reading.curve)].add(one.id)
    for (_, sha), several in seeds.items():
        if len(several) > 1:
            yield f"seeds {sorted(several)} saw the same data, {sha}"
    for (_, seed), shas in data.items():
        if len(shas) > 1:
            yield f"seed {seed} saw different data for different encodings"
    for ids in curves.values():
        if len(ids) > 1:
            yield f"cells {' and '.join(sorted(ids))} have one and the same training"


def _ranges(opened: Opened) -> Iterator[str]:
    for one in opened.all():
        if (one.status == "ok") != (one.reading is not None):
            yield f"record {one.id}: a status of {one.status} {'without' if one.reading is None else 'with'} a reading"
        if (sentence := _range(one)) is not None:
            yield f"record {one.id}: {sentence}"


def _range(record: Record) -> str | None:
    match record.reading:
        case TimeReading() as time:
            if not time.samples_ms or min(*time.samples_ms, *time.wall_ms, time.inner) <= 0:
                return "a time is above 0, and there is at least one"
            return None if len(time.samples_ms) == len(time.wall_ms) else "each sample has its wall time"
        case MemoryReading() as memory:
            return None if memory.peak_mib >= 0 else "a peak of memory is not below 0"
        case AccuracyReading() as accuracy:
            scores = (*accuracy.scores, *accuracy.windowed, *accuracy.truncated)
            if any((one.nats or 0) < 0 or (one.blind_nats or 1) <= 0 for one in scores):
                return "a loss is not below 0"
            right = all(0 <= one.correct <= one.total and one.total > 0 for one in scores)
            rates = all(0 <= rate <= 1 for one in scores for rate in (one.blind, one.chance))
            return (
                None if right and rates and accuracy.scores else "right answers lie between 0 and the questions asked"
            )
    return None


def _clean(opened: Opened) -> Iterator[str]:
    if opened.manifest.division == "closed":
        for one in opened.all():
            commit = one.environment.commit
            if one.environment.dirty or not commit:
                what = f"the commit {commit[:10]} with changes" if commit else "no commit"
                yield f"the closed division takes clean commits, and there are records of {what}"


def _numbers(opened: Opened) -> Iterator[str]:
    """Every number that is shown comes out of the raw samples again."""
    again, given = (text.decode(errors="replace").split("\n") for text in (_again(opened), opened.files[REPORT]))
    for number, (expected, found) in enumerate(zip(again, given, strict=False), 1):
        if expected != found:
            yield f"{REPORT}:{number} does not follow from the records"
            return
    if len(again) != len(given):
        yield f"{REPORT} has {len(given)} lines, and {len(again)} follow from the records"


def _again(opened: Opened) -> bytes:
    return report(opened.suite, opened.all())


CHECKS: tuple[Callable[[Opened], Iterator[str]], ...] = (
    _division, _cells, _machines, _duplicates, _seeds, _ranges, _clean,
)  # fmt: skip
