"""Whether torch.compile has what it needs here."""

import os
import shutil
from pathlib import Path

import torch

from grape_bench.errors import Unsupported


def require_compiler(device: str, home: Path = Path(torch.__file__).parent) -> None:
    """Make sure that torch.compile can build code for `cpu` or `cuda`.

    Args:
        home: where torch is installed.

    Raises:
        Unsupported: on a CPU there is no C++ compiler; or a space in the path of torch, which torch 2.13 hands to the
            linker without quotes.
    """
    if device != "cpu":
        return
    if shutil.which(os.environ.get("CXX", "g++")) is None:
        raise Unsupported("torch.compile needs a C++ compiler on a CPU, and there is no g++ here")
    if " " in str(home):
        raise Unsupported("torch.compile cannot link where torch lies in a folder with a space in its name")
