"""asv over commits of this project, in environments that asv makes: minutes, and so `tox -e asv`."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import grape_bench

HOME = Path(grape_bench.__file__).parents[1]

pytestmark = pytest.mark.skipif("GRAPE_BENCH_ASV" not in os.environ, reason="takes minutes: tox -e asv")


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A clone with the working tree as it is, in three commits."""
    folder = tmp_path_factory.mktemp("asv") / "clone"
    _git(HOME, "clone", "--quiet", str(HOME), str(folder))
    for name in _git(HOME, "ls-files", "-co", "--exclude-standard").splitlines():
        source, target = HOME / name, folder / name
        if source.is_file() and Path(name).parts[0] not in ("results", "reports"):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    _git(folder, "add", ".")
    for number in range(3):
        _git(folder, "commit", "--quiet", "--allow-empty", "-m", f"commit {number}")
    _asv(folder, "machine", "--yes", "--machine", "toy")
    return folder


def _git(folder, *words):
    who = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]
    return subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True).stdout


def _asv(folder, *words, code=0):
    """asv with a home of its own, where it keeps what it knows of the machine."""
    done = subprocess.run(
        [sys.executable, "-m", "asv", *words],
        cwd=folder,
        env={**os.environ, "HOME": str(folder.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def _results(folder):
    return [json.loads(path.read_text(encoding="utf-8")) for path in (folder / "results/asv").glob("toy/*-*.json")]


def test_a_range_is_measured_without_training_and_compared(clone):
    _asv(clone, "run", "HEAD~2..HEAD", "--quick", "--machine", "toy", "--bench", "track_.*(time|memory)")
    found = _results(clone)
    assert len(found) == 2
    for one in found:
        assert not any("error" in name for name in one["results"])
        peaks, *_ = one["results"]["suite.history_attention.track_peak_memory"]
        assert all(peak > 2**10 for peak in peaks)
    rows = [line for line in _asv(clone, "compare", "HEAD~1", "HEAD").splitlines() if "track_" in line]
    assert len(rows) == 14
    assert len([row for row in rows if "±" in row]) == 7


def test_everything_includes_a_training_that_learned(clone):
    _asv(clone, "run", "HEAD^!", "--machine", "toy")
    name = "suite.history_registers.track_extrapolation_error"
    (error,) = (one["results"][name][0][0] for one in _results(clone) if name in one["results"])
    assert 0 < error < 1 - 1 / 3  # a reader without positions is right in a third
    assert re.search(rf"{name}.*\n.*ok", _asv(clone, "show", "HEAD", "--details", "--machine", "toy"))
