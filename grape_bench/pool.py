"""Records by the hundred thousand, pooled over machines and people. Reading and grouping is DuckDB's."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import duckdb
from pydantic import TypeAdapter, ValidationError

from grape_bench import queries
from grape_bench.board import Board, Lost, Member, Source
from grape_bench.cell import Cell
from grape_bench.errors import UserError
from grape_bench.registry import Registry
from grape_bench.store import Store
from grape_bench.suite import MODEL_VERSION, RECIPE_VERSION

_MEMORY = "1GiB"  # of DuckDB, which goes to the disk beyond it
_CELL: TypeAdapter[Cell] = TypeAdapter(Cell)


class Pooled(NamedTuple):
    """What the records of many come to.

    Args:
        outdated: how many records are of a version, `name@version`, that this checkout has no longer.
    """

    boards: tuple[Board, ...]
    sources: tuple[Source, ...]
    outdated: Mapping[str, int]


class _Key(NamedTuple):
    """What makes a board: cost is kept apart by hardware and suite, accuracy is not."""

    place: int  # 0 for accuracy
    part: str
    setting: int


def pool(files: Mapping[Path, str]) -> Pooled:
    """Read records and gather what may be compared: accuracy over all machines, cost within like hardware.

    Of each suite's cost metric and number format, on one kind of hardware, the setting with the most encodings stands
    for all; of these the longest, then the largest.

    Args:
        files: JSON lines as the store keeps them, each with the name of the folder or bundle that it is from.

    Raises:
        UserError: a line is no record; it names file and line.
    """
    labels = list(dict.fromkeys(files.values()))
    with duckdb.connect(config={"memory_limit": _MEMORY, "preserve_insertion_order": False}) as db:
        db.execute(queries.ATTEMPTS, {"files": [str(path) for path in files]})
        for (name,) in db.execute(queries.BROKEN).fetchall():
            _explain(Path(name))
        _table(db, "file", filename=map(str, files), origin=map(labels.index, files.values()), label=files.values())
        cells, outdated = _settings(db), _names(db)
        db.execute(queries.PLACES)
        db.execute(queries.SOURCES)
        db.execute(queries.COUNTED)
        db.execute(queries.UNITS)
        sources = (Source(*row) for row in db.execute(queries.RUNS).fetchall())
        return Pooled(tuple(_boards(db, cells)), tuple(sources), outdated)


def _explain(path: Path) -> None:
    """Say what is wrong in a file. A last line that a crash cut short is nothing wrong: it counts for nothing."""
    for _ in Store(path.parents[1]).lines(path.stem, path.parent.name):
        pass


def _table(db: duckdb.DuckDBPyConnection, name: str, /, **columns: Iterable[object]) -> None:
    parts = ", ".join(f"unnest(${column}) as {column}" for column in columns)
    db.execute(f"create table {name} as select {parts}", {key: list(values) for key, values in columns.items()})


def _settings(db: duckdb.DuckDBPyConnection) -> list[Cell]:
    """A cell for each setting; shapes that say the same, one of them leaving out an option at its default, are one."""
    cells: dict[str, Cell] = {}
    found: dict[str, str] = {}
    for shape, name in db.execute(queries.SHAPES).fetchall():
        values = json.loads(shape)
        own = {"seed": 0} if values.get("kind") == "accuracy" else {}
        try:
            cell = _CELL.validate_python(values | own | {"encoding": ""})
        except ValidationError as error:
            _explain(Path(name))
            raise UserError(f"{name}: a record's cell is none") from error
        found[shape] = cell.setting
        cells.setdefault(cell.setting, cell)
    numbers = {setting: number for number, setting in enumerate(cells)}
    _table(db, "shape", shape=found, setting=map(numbers.__getitem__, found.values()))
    return list(cells.values())


def _names(db: duckdb.DuckDBPyConnection) -> Counter[str]:
    """Name the rows of boards; of those whose code is not here, by its versions. What is outdated gets no name."""
    here, outdated, rows = _Here(), Counter[str](), []
    for encoding, text, count in db.execute(queries.NAMES).fetchall():
        versions = json.loads(text)
        outdated.update({one: count for one in versions if here.outdated(one)})
        if not any(map(here.outdated, versions)):
            strange = [one for one in versions if not here.known(one)]
            rows.append((encoding, text, f"{encoding} ({', '.join(strange)})" if strange else encoding))
    encodings, texts, names = zip(*rows, strict=True) if rows else ((), (), ())
    _table(db, "named", encoding=encodings, versions=texts, name=names)
    return outdated


class _Here:
    """The plug-ins of this checkout, and their versions."""

    def __init__(self) -> None:
        self._registries = [Registry(kind) for kind in ("encodings", "tasks", "backends", "metrics")]
        self._versions = {"model": {str(MODEL_VERSION)}, "recipe": {str(RECIPE_VERSION)}}

    def known(self, version: str) -> bool:
        return bool(self._of(version.partition("@")[0]))

    def outdated(self, version: str) -> bool:
        """It is another version of what is here."""
        name, _, number = version.partition("@")
        return self.known(version) and number not in self._of(name)

    def _of(self, name: str) -> set[str]:
        if name not in self._versions:
            self._versions[name] = {one[name].version for one in self._registries if name in one}
        return self._versions[name]


def _boards(db: duckdb.DuckDBPyConnection, cells: list[Cell]) -> Iterator[Board]:
    columns: defaultdict[tuple[object, ...], list[tuple[_Key, list[str], list[str]]]] = defaultdict(list)
    for place, part, setting, measured, tried in db.execute(queries.BOARDS).fetchall():
        cell = cells[setting]
        apart = (setting,) if cell.kind == "accuracy" else (cell.scope, cell.metric, cell.dtype)
        columns[place, part, *apart].append((_Key(place, part, setting), measured, tried))
    chosen = {}
    for found in columns.values():
        key, _, tried = max(found, key=lambda one: (len(one[1]), _size(cells[one[0].setting]), one[0].setting))
        chosen[key] = tuple(sorted({name for _, _, names in found for name in names} - set(tried)))
    members = _members(db, chosen)
    hardware = dict(db.execute(queries.HARDWARE).fetchall())
    for key, missing in chosen.items():
        yield Board(cells[key.setting], tuple(hardware.get(key.place, ())), key.part, tuple(members[key]), missing)


def _size(cell: Cell) -> tuple[int, ...]:
    return (cell.length, cell.heads * cell.head_dim * cell.batch) if cell.kind == "cost" else ()


def _members(db: duckdb.DuckDBPyConnection, wanted: Iterable[_Key]) -> Mapping[_Key, list[Member]]:
    places, parts, settings = zip(*wanted, strict=True) if wanted else ((), (), ())
    _table(db, "wanted", place=places, part=parts, setting=settings)
    found: defaultdict[_Key, list[Member]] = defaultdict(list)
    for *key, name, figures, areas, tried, lost, records, sources in db.execute(queries.MEMBERS).fetchall():
        each = tuple(Lost(*one) for one in lost or ())
        member = Member(name, figures or {}, areas or {}, tuple(tried), each, records, tuple(sources))
        found[_Key(*key)].append(member)
    return found
