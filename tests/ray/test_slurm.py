"""The batch script of docs/clusters.md, on a Slurm of one node that is made up; Ray and the run are real."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

pytest.importorskip("ray", reason="Ray is not installed; `tox -e ray` brings it")

HOME = Path(__file__).resolve().parents[2]
PROGRAMS = {
    "scontrol": "echo localhost",
    "srun": 'while [[ $1 == --* ]]; do shift; done; exec "$@"',
    "hostname": "echo 127.0.0.1 ::1",
    "ray": f'exec "{sys.executable}" -m ray.scripts.scripts "$@"',
    "grape-bench": f'exec "{sys.executable}" -m grape_bench "$@" --device cpu --only metric=accuracy',
}


@pytest.fixture
def batch(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """The script on its way, with the smoke suite."""
    page = (HOME / "docs" / "clusters.md").read_text(encoding="utf-8")
    found = re.search(r"^```bash file=cluster.sbatch\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert found is not None
    (tmp_path / "cluster.sbatch").write_text(found[1], encoding="utf-8")
    for name, body in PROGRAMS.items():
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
        path.chmod(0o755)
    path = os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]])
    environment = {
        **os.environ,
        "PATH": path,
        "PYTHONPATH": str(HOME),
        "HOME": str(tmp_path),
        "SLURM_JOB_NODELIST": "one",
    }
    words = ["bash", "cluster.sbatch", str(HOME / "suites" / "smoke.yaml")]
    done = subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)
    yield done
    below = psutil.Process(done.pid).children(recursive=True) if done.poll() is None else []
    for one in [*below, *_of(tmp_path)]:
        one.kill()


def _of(folder: Path) -> list[psutil.Process]:
    """What the script has left running: a job's end ends these."""
    found = []
    for one in psutil.process_iter():
        try:
            found += [one] if one.environ().get("HOME") == str(folder) else []
        except psutil.Error:
            continue
    return found


def test_the_batch_script_starts_a_cluster_and_runs_the_suite(batch: subprocess.Popen[str], tmp_path: Path) -> None:
    assert batch.wait(600) == 0
    (records,) = (tmp_path / "results").glob("*/smoke.jsonl")
    assert records.read_text(encoding="utf-8").count('"status":"ok"') == 12
    assert (tmp_path / "reports" / "smoke.html").is_file()
