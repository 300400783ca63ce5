"""Machine, driver, torch and commit; and what must match before two cost records are compared."""

import os
import platform
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
from pydantic import BaseModel, ConfigDict

from grape_bench import __version__, nvml

COMPARED = ("device", "cpu", "driver", "cuda", "torch", "threads", "tf32", "deterministic", "flush_denormal")
_HOME = Path(__file__).resolve().parents[1]


class Environment(BaseModel):
    """Where and with what a record was made.

    Args:
        machine: slug of the hardware, never a host name.
        device: `cpu`, or the name of the GPU as torch gives it, a slice of MIG with it, and its power limit where
            that was lowered.
        tf32: products of float32 matrices may be rounded to it; deterministic: torch was told to be.
        threads: threads of one operation; load: runnable processes over the last minute, before the block.
        commit: of the checkout that the package runs from, None outside one; dirty: changes in it outside
            `results/` and `reports/`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    machine: str
    device: str
    cpu: str
    cores: int
    memory_gib: float
    driver: str | None = None
    cuda: str | None = None
    torch: str
    python: str
    system: str
    threads: int
    tf32: bool = False
    deterministic: bool = False
    flush_denormal: bool = True
    governor: str | None = None
    load: float | None = None
    package: str = __version__
    commit: str | None = None
    dirty: bool | None = None

    def compared(self) -> tuple[str, ...]:
        """The values that two cost records must share to be compared, in the order of `COMPARED`."""
        return tuple(str(getattr(self, key)) for key in COMPARED)


def differences(one: Environment, other: Environment) -> Iterator[str]:
    """A sentence for each key that forbids comparing the two."""
    for key, left, right in zip(COMPARED, one.compared(), other.compared(), strict=True):
        if left != right:
            yield f"{key} differs: {left} and {right}"


def observe(device: str, threads: int = 1) -> Environment:
    """Describe this machine as it is now. Imports torch.

    Args:
        device: `cpu`, `cuda` or `auto`, which takes a GPU where there is one.
        threads: threads that one operation will use.
    """
    import torch

    cuda = resolve(device) == "cuda"
    name = _gpu() if cuda else "cpu"
    cpu = _cpu()
    cores = os.cpu_count() or 1
    return Environment(
        machine=slug(name) if cuda else slug(f"{cpu} {cores} cores"),
        device=name,
        cpu=cpu,
        cores=cores,
        memory_gib=round(psutil.virtual_memory().total / 2**30, 1),
        driver=nvml.driver() if cuda else None,
        cuda=torch.version.cuda if cuda else None,
        torch=torch.__version__,
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        threads=threads,
        tf32=cuda and torch.backends.cuda.matmul.allow_tf32,
        deterministic=torch.are_deterministic_algorithms_enabled(),
        governor=_read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        load=round(os.getloadavg()[0], 2),
        **checkout(),
    )


def resolve(device: str) -> str:
    """`cpu` or `cuda`. Imports torch.

    Raises:
        RuntimeError: `cuda` was asked for and there is none.
    """
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise RuntimeError("--device cuda was asked for, and torch finds no CUDA device")
    return "cuda" if device != "cpu" and torch.cuda.is_available() else "cpu"


def slug(text: str) -> str:
    """A folder name: lower case letters, digits and single hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _cpu() -> str:
    info = _read("/proc/cpuinfo") or ""
    match = re.search(r"^model name\s*:\s*(.+)$", info, re.MULTILINE)
    return match.group(1).strip() if match else platform.processor() or platform.machine()


def uuid() -> str:
    """What NVML knows the current GPU by. Imports torch."""
    import torch

    return str(torch.cuda.get_device_properties(torch.cuda.current_device()).uuid)


def _gpu() -> str:
    import torch

    try:
        limit = nvml.Gpu(uuid()).lowered_limit_w()
    except nvml.UnreadableError:
        limit = None
    return name_of(torch.cuda.get_device_name(), limit)


def name_of(gpu: str, limit_w: float | None) -> str:
    """A GPU with its power limit, None for the board's own: costs under two limits are not those of one device."""
    return gpu if limit_w is None else f"{gpu} at {limit_w:g} W"


def checkout() -> dict[str, Any]:
    """Commit of the checkout that the package runs from, and whether it is dirty; None outside one."""
    try:
        commit = _git("rev-parse", "HEAD")
        changes = _git("status", "--porcelain", "--", ".", ":!results", ":!reports")
    except (OSError, subprocess.SubprocessError):
        return {"commit": None, "dirty": None}
    return {"commit": commit, "dirty": bool(changes)}


def _git(*words: str) -> str:
    if not (_HOME / ".git").exists():  # installed elsewhere: the repository around it is somebody else's
        raise FileNotFoundError(_HOME / ".git")
    done = subprocess.run(["git", *words], cwd=_HOME, capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return None
