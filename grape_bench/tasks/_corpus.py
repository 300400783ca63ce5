"""Where the text of a language model comes from: the sources of Python's standard library, or a user's file."""

import hashlib
import sysconfig
from pathlib import Path
from typing import NamedTuple

from grape_bench.errors import Unsupported

_EVERY = 10  # one file in so many is for tests; of a single file the last part of as many


class Corpus(NamedTuple):
    """A text in two parts that share nothing.

    Args:
        train, test: bytes, in buffers that tensors may share; digest: of both, 16 hexadecimal digits.
    """

    train: bytearray
    test: bytearray
    digest: str


def of_python() -> Corpus:
    """The modules at the top of the standard library, by name, but those whose name begins with an underscore: some of
    these are written when Python is built, and differ from machine to machine.

    Raises:
        Unsupported: this Python came without its sources.
    """
    folder = Path(sysconfig.get_path("stdlib"))
    paths = sorted(path for path in folder.glob("[a-z]*.py") if path.name != "sitecustomize.py")
    if len(paths) < _EVERY:
        raise Unsupported(f"text: {folder} holds {len(paths)} sources of Python's library; give another text as file=")
    parts = [bytearray().join(path.read_bytes() for path in some) for some in (_train(paths), paths[::_EVERY])]
    return _corpus(*parts)


def of_file(name: str) -> Corpus:
    """A user's text, the last tenth of it for tests.

    Raises:
        Unsupported: it cannot be read.
    """
    try:
        whole = bytearray(Path(name).read_bytes())
    except OSError as error:
        raise Unsupported(f"text(file={name!r}): {error.strerror}") from None
    border = len(whole) - len(whole) // _EVERY
    if border == len(whole):
        raise Unsupported(f"text(file={name!r}): {len(whole)} bytes are too few for a training and a test text")
    return _corpus(whole[:border], whole[border:])


def _train(paths: list[Path]) -> list[Path]:
    return [path for index, path in enumerate(paths) if index % _EVERY]


def _corpus(train: bytearray, test: bytearray) -> Corpus:
    sha = hashlib.sha256(len(train).to_bytes(8, "big") + train + test)
    return Corpus(train, test, sha.hexdigest()[:16])
