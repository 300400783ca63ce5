"""A bundle: one run as a zip that others can check, its records beside the suite and the report they give."""

import hashlib
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from grape_bench import __version__
from grape_bench.cell import Frozen
from grape_bench.errors import UserError
from grape_bench.record import Record
from grape_bench.registry import Registry
from grape_bench.report import build
from grape_bench.store import Store
from grape_bench.suite import Suite, expand, parse
from grape_bench.suite_files import recorded
from grape_bench.suite_format import SuiteFile
from grape_bench.suite_text import read_text

FORMAT = 1  # history: 1, the first
MANIFEST, SUITE, REPORT, RECORDS = "manifest.json", "suite.yaml", "report.md", "records"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # of every entry, so that the same records give the same bytes


class Manifest(Frozen):
    """What a bundle says of itself.

    Args:
        suite: its name; package: the version of grape-bench that made the bundle.
        division: `closed` for a suite as it ships, `open` for any other, which then states its changes.
        changes: a sentence for each key that differs from the shipped suite of this name.
        files: sha256 of each other entry.
    """

    format: int = FORMAT
    suite: str
    package: str
    division: Literal["closed", "open"]
    changes: tuple[str, ...] = ()
    files: dict[str, str]


def bundle(path: Path, store: Store, target: Path) -> Manifest:
    """Write the bundle of a suite's records.

    Args:
        path: of the suite's file; target: of the zip.

    Raises:
        UserError: the suite is wrong, it has no records, or the zip cannot be written.
    """
    text = read_text(path)
    suite = parse(text, str(path))
    cells = {cell.id for cell in expand(suite)}
    machines = {one.environment.machine for one in store.records(suite.name)}
    kept = {name: [one for one in store.records(suite.name, name) if one.id in cells] for name in sorted(machines)}
    files = {f"{RECORDS}/{name}.jsonl": lines(records) for name, records in kept.items() if records}
    if not files:
        raise UserError(f"{suite.name} has no records under {store.folder}; run it first")
    files |= {SUITE: text.encode(), REPORT: report(suite, [one for each in kept.values() for one in each])}
    changes = differences(suite)
    manifest = Manifest(
        suite=suite.name,
        package=__version__,
        division="open" if changes else "closed",
        changes=changes,
        files={name: sha256(data) for name, data in files.items()},
    )
    _write(target, {MANIFEST: manifest.model_dump_json(indent=1).encode(), **files})
    return manifest


def differences(suite: Suite) -> tuple[str, ...]:
    """How a suite differs from the one of its name that ships, or that none does; empty where it is the same."""
    shipped = recorded([suite.name])
    if not shipped:
        return (f"no suite named {suite.name} ships",)
    (path,) = shipped
    known = parse(read_text(path), str(path))
    keys = (key for key in SuiteFile.model_fields if getattr(suite, key) != getattr(known, key))
    return tuple(f"{key} differs from that of {path.name}" for key in keys)


def report(suite: Suite, records: Iterable[Record]) -> bytes:
    """The suite's report in Markdown, every number of it from the records."""
    page = build(suite, expand(suite), records, Registry("metrics"))
    return str(Registry("renderers")["markdown"].load()().render(page)).encode()


def lines(records: Iterable[Record]) -> bytes:
    """Records as the store keeps them."""
    return b"".join(one.model_dump_json(by_alias=True).encode() + b"\n" for one in records)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _write(target: Path, files: dict[str, bytes]) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in files.items():
                archive.writestr(zipfile.ZipInfo(name, _EPOCH), data, zipfile.ZIP_DEFLATED)
    except OSError as error:
        raise UserError(f"{target} cannot be written: {error.strerror}") from None
