"""The text of a suite: where each value stands, and what is wrong there."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from grape_bench.errors import UserError

LARGEST = 2**16  # bytes; ours have some thousands
_MOST = 50  # problems reported of one file

Loc = tuple[str | int, ...]


class Place(NamedTuple):
    """Where a key or an item stands, both counted from 1."""

    line: int
    column: int


class Problem(NamedTuple):
    """One thing that is wrong in a file."""

    place: Place
    loc: Loc
    sentence: str


@dataclass(frozen=True)
class SuiteText:
    """A YAML file as plain values.

    Args:
        source: the path as the user wrote it.
        values: what the file holds, built of dict, list, str, int, float, bool and None.
        places: where each key and item stands; the file itself has the location ().
        problems: what is wrong already, duplicate and empty keys among them.
    """

    source: str
    values: Any = None
    places: dict[Loc, Place] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    _reported: set[Loc] = field(default_factory=set)

    def place(self, loc: Loc) -> Place:
        """Where a location stands, or the nearest one around it that the file has."""
        while loc and loc not in self.places:
            loc = loc[:-1]
        return self.places.get(loc, Place(1, 1))

    def given(self, loc: Loc) -> Any:
        """The value at a location that the file has."""
        value = self.values
        for step in loc:
            value = value[step]
        return value

    def report(self, loc: Loc, sentence: str) -> None:
        """Note a problem; the first one of a location stands."""
        if loc not in self._reported:
            self.report_at(self.place(loc), loc, sentence)

    def report_at(self, place: Place, loc: Loc, sentence: str) -> None:
        """Note a problem that stands elsewhere than its location, which may have several."""
        self._reported.add(loc)
        self.problems.append(Problem(place, loc, sentence))

    def refuse(self) -> None:
        """Stop if there are problems.

        Raises:
            UserError: there are; its message has one line for each, in the order of the file.
        """
        lines = [self._line(problem) for problem in sorted(self.problems, key=lambda one: one.place)]
        if lines[_MOST:]:
            lines[_MOST:] = [f"{self.source}: and {len(lines) - _MOST} more"]
        if lines:
            raise UserError("\n".join(lines))

    def _line(self, problem: Problem) -> str:
        where = f"{key_path(problem.loc)}: " if problem.loc else ""
        return f"{self.source}:{problem.place.line}: {where}{problem.sentence}"


def key_path(loc: Loc) -> str:
    """A location as people write it, `cost[0].lengths[2]`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in loc).lstrip(".")


def read_text(path: Path) -> str:
    """The text of a suite's file, without a byte order mark.

    Raises:
        UserError: there is no such file, it is no file, it is too large, or it is not UTF-8.
    """
    path = file_of(path)
    try:
        if path.exists() and not path.is_file():
            raise UserError(f"{path} is {'a folder' if path.is_dir() else 'no plain file'}; name a suite's YAML file")
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise UserError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > LARGEST:
        raise UserError(f"{path} is larger than {LARGEST} bytes, too large for a suite")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path}:{line}: byte 0x{data[error.start]:02x} is not UTF-8; a suite is UTF-8 text") from None


def file_of(path: Path) -> Path:
    """The file that holds a suite: `a.yaml` for `a@gpu.yaml`, which is the suite `a` at its size `gpu`."""
    stem, at, _ = path.stem.partition("@")
    return path.with_name(f"{stem}{path.suffix}") if at and stem else path


def suite_name(path: Path) -> str:
    """The name of a suite: its file's stem, and `@` with its size; it also names files under results/ and reports/.

    Raises:
        UserError: it would make a poor file name.
    """
    if not re.fullmatch(r"\w[\w.-]*(@\w[\w.-]*)?", path.stem):
        raise UserError(f"{path}: a suite's file name is letters, digits, '_', '-' and '.', not {path.stem!r}")
    return path.stem
