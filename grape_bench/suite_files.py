"""Finding suites by the words that a user types."""

import difflib
from collections.abc import Iterable
from pathlib import Path

from grape_bench.errors import UserError
from grape_bench.suite import Suite, load
from grape_bench.suite_text import file_of

SUITES = Path("suites")


def all_files() -> list[Path]:
    """The suites of the working directory."""
    return sorted(SUITES.glob("*.yaml"))


def load_all(words: Iterable[str], commands: Iterable[str] = ()) -> list[Suite]:
    """Load the named files.

    Args:
        commands: words that may have been meant in place of a file.

    Raises:
        UserError: a line for each thing that is wrong in any of them.
    """
    suites, errors = [], []
    for word in words:
        try:
            suites.append(load(_existing(word, list(commands))))
        except UserError as error:
            errors.append(str(error))
    if errors:
        raise UserError("\n".join(errors))
    return suites


def by_name(word: str) -> str:
    """The file of a suite that was called by its name; any other word as it is."""
    path = SUITES / f"{word}.yaml"
    return str(path) if _is_file(path) and not _is_file(Path(word)) else word


def recorded(names: Iterable[str]) -> list[Path]:
    """The suites of the working directory among some names, such as those that have records."""
    return [path for path in (SUITES / f"{name}.yaml" for name in sorted(names)) if _is_file(path)]


def _is_file(path: Path) -> bool:
    try:
        return file_of(path).is_file()
    except OSError:  # a name too long
        return False


def _existing(word: str, commands: list[str]) -> Path:
    path = Path(word)
    try:
        if file_of(path).exists() or path.is_symlink():
            return path
    except (OSError, ValueError) as error:  # a name too long, or one with a NUL
        raise UserError(f"{word!r} is no path: {getattr(error, 'strerror', None) or error}") from None
    raise UserError(
        f"there is no suite file {word}.{_hint(path, commands)} `grape-bench list suites` shows what there is."
    )


def _hint(path: Path, commands: list[str]) -> str:
    near = (path.with_name(f"{path.name}.yaml"), SUITES / f"{path.name}.yaml", SUITES / path.name)
    files = {one.stem: one for one in all_files()}
    close = difflib.get_close_matches(path.stem, files, n=1)
    found = [str(one) for one in near if _is_file(one)] + [str(files[stem]) for stem in close]
    if found:
        return f" Did you mean {found[0]}?"
    command = difflib.get_close_matches(str(path), commands, n=1)
    return f" Did you mean the command {command[0]!r}?" if command else ""
