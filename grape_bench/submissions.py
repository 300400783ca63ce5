"""What people hand in: folders of records, which are believed, and bundles, which are checked first."""

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os.path import exists, isdir
from pathlib import Path
from tempfile import TemporaryDirectory

from grape_bench.bundle import MANIFEST, RECORDS, Manifest
from grape_bench.errors import UserError
from grape_bench.store import require_plain
from grape_bench.validate import validate


@dataclass(frozen=True)
class Submissions:
    """Files of records, and what is left out.

    Args:
        files: JSON lines, each with the name of the folder or bundle that it is from.
        refused: bundles with the reasons against them.
    """

    files: Mapping[Path, str]
    refused: Mapping[str, Sequence[str]]


@contextmanager
def gathered(places: Sequence[Path]) -> Iterator[Submissions]:
    """Find the records of folders and bundles; those of bundles are unpacked for as long as this lasts.

    Raises:
        UserError: a place is not there, or a folder has no records.
    """
    files: dict[Path, str] = {}
    refused: dict[str, list[str]] = {}
    with TemporaryDirectory() as folder:
        for number, place in enumerate(places):
            if isdir(place):  # of a name that cannot be, the method of a path raises
                files |= dict.fromkeys(_of_folder(place), f"{place}/")
            elif not exists(place):
                raise UserError(f"there is no folder or bundle {place}")
            elif reasons := validate(place):
                refused[str(place)] = reasons
            else:
                files |= _of_bundle(place, Path(folder, str(number)))
        yield Submissions(files, refused)


def _of_folder(folder: Path) -> list[Path]:
    found = sorted(folder.glob("*/*.jsonl"))
    for path in found:
        require_plain(path)
    if not found:
        raise UserError(f"{folder} has no records; `grape-bench SUITE` makes some, <machine>/<suite>.jsonl in a folder")
    return found


def _of_bundle(bundle: Path, target: Path) -> dict[Path, str]:
    """Unpack the records of a bundle that was accepted, and so has no names but those of the format."""
    with zipfile.ZipFile(bundle) as archive:
        names = [name for name in archive.namelist() if name.startswith(f"{RECORDS}/")]
        archive.extractall(target, names)
        division = Manifest.model_validate_json(archive.read(MANIFEST)).division
    return {target / name: f"{bundle}, {division} division" for name in names}
