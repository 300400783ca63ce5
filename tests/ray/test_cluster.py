"""A real Ray on this machine: what it records, and what becomes of a block when its node, worker or time is lost."""

import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

ray = pytest.importorskip("ray", reason="Ray is not installed; `tox -e ray` brings it")

from ray.cluster_utils import Cluster  # noqa: E402

from grape_bench import suite as suites  # noqa: E402
from grape_bench.cli import main  # noqa: E402
from grape_bench.record import AccuracyReading, Record  # noqa: E402
from grape_bench.store import Store  # noqa: E402

SMOKE = Path(__file__).resolve().parents[2] / "suites" / "smoke.yaml"
TINY = """
title: Tiny
baseline: none
processes: 1
encodings: [none, rope]
seeds: {seeds}
block_minutes: {minutes}
cost:
  - {{lengths: [16], heads: [2], head_dim: [8], metrics: [forward_ms, peak_mib]}}
accuracy:
  - task: registers(registers=2, writes=2, pairs=2)
    train_length: 16
    test_lengths: [16, 24]
    model: {{width: 16, layers: 2, heads: 2}}
    training: {{steps: {steps}, batch: 4, warmup: 2, test_examples: 10}}
"""
DEADLY = """
import os
import signal

import psutil

from grape_bench.encodings import Encoding


class Deadly(Encoding):
    \"\"\"Takes down who minds it: the parent of the server that this process was forked from.\"\"\"

    def __init__(self, site):
        super().__init__()

    def rotate(self, q, k, features, at):
        os.kill(psutil.Process().parent().ppid(), signal.SIGKILL)
        signal.pause()


class Crash(Encoding):
    \"\"\"Takes down its own process.\"\"\"

    def __init__(self, site):
        super().__init__()

    def rotate(self, q, k, features, at):
        os.kill(os.getpid(), signal.SIGSEGV)
"""


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    yield
    ray.shutdown()
    below = psutil.Process().children(recursive=True)
    alive = [one for one in below if re.search("raylet|gcs_server|ray::", " ".join(command(one)))]
    _, alive = psutil.wait_procs(alive, timeout=10)
    assert [command(one) for one in alive] == []


def command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def tiny(folder: Path, *, seeds: str = "[0]", steps: int = 6, minutes: float = 5) -> Path:
    path = folder / "tiny.yaml"
    path.write_text(TINY.format(seeds=seeds, steps=steps, minutes=minutes), encoding="utf-8")
    return path


def words(folder: Path, suite: Path, *more: str, executor: str = "ray") -> list[str]:
    places = ["--results", str(folder / executor), "--reports", str(folder / "reports")]
    return [str(suite), *places, "--device", "cpu", "--executor", executor, *more]


def members(folder: Path, suite: str = "tiny") -> list[Record]:
    return [one for one in Store(folder / "ray").records(suite) if one.role == "member"]


def wait_for(condition: Callable[[], Any], seconds: float = 600.0) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


def lines(folder: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in (folder / "ray").glob("*/tiny.jsonl"))


def minding(of: psutil.Process) -> list[psutil.Process]:
    """The workers below a process that mind a block now."""
    return [one for one in of.children(recursive=True) if command(one)[:1] == ["ray::mind"]]


def test_smoke_trains_as_the_local_executor_does(tmp_path: Path) -> None:
    for executor in ("local", "ray"):
        assert main(words(tmp_path, SMOKE, "--only", "metric=accuracy", executor=executor)) == 0
    local, there = (Store(tmp_path / one).records("smoke") for one in ("local", "ray"))
    assert len(local) == 12
    assert sorted(map(learned, there)) == sorted(map(learned, local))
    (one,), (other,) = ({record.environment.compared() for record in records} for records in (local, there))
    assert one == other
    assert {one.environment.commit for one in local} == {one.environment.commit for one in there}


def learned(record: Record) -> tuple[str, str]:
    """A training without what it took."""
    assert isinstance(record.reading, AccuracyReading)
    return record.id, record.reading.model_copy(update={"train_s": 0.0, "train_cpu_s": 0.0}).model_dump_json()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A node of one core, which stays."""
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    yield made
    made.shutdown()


def test_a_node_that_dies_in_the_middle_costs_no_record(
    tmp_path: Path, cluster: Cluster, capfd: pytest.CaptureFixture[str]
) -> None:
    """Two nodes of one core each; one goes while it trains, and the other does its work over again."""
    suite = tiny(tmp_path, seeds="[0, 1, 2, 3]", steps=200)
    node = cluster.add_node(num_cpus=1)

    def kill() -> None:
        wait_for(lambda: lines(tmp_path) >= 7)  # the start, the costs with their control, and two trainings
        cluster.remove_node(node, allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    code = main(words(tmp_path, suite, "--address", cluster.address))
    killer.join()
    assert code == 0
    asked = suites.expand(suites.load(suite))
    assert len(asked) == 4 + 8
    assert Counter(one.id for one in members(tmp_path)) == {cell.id: 1 for cell in asked}
    assert {one.status for one in members(tmp_path)} == {"ok"}
    assert capfd.readouterr().err.count("tried again") == 1, "it held one block when it died"


def test_what_takes_its_worker_down_is_tried_three_times_and_the_rest_goes_on(tmp_path: Path) -> None:
    """The file of the plug-in travels to where it is run; what kills its own process alone is known at once."""
    (tmp_path / "deadly.py").write_text(DEADLY, encoding="utf-8")
    named = [f"--encoding={tmp_path / 'deadly.py'}:{one}" for one in ("Deadly", "Crash")]
    assert main(words(tmp_path, tiny(tmp_path), *named, "--only", "metric=peak_mib")) == 1
    ends = {one.cell.encoding: one for one in members(tmp_path)}
    assert {name: one.status for name, one in ends.items()} == {
        "none": "ok", "rope": "ok", "Deadly": "failed", "Crash": "failed",
    }  # fmt: skip
    assert ends["Deadly"].message is not None
    assert ends["Deadly"].message.endswith("(tried 3 times)")
    assert ends["Crash"].message is not None
    assert "SIGSEGV" in ends["Crash"].message


def test_a_block_that_takes_too_long_is_ended_where_it_runs(tmp_path: Path) -> None:
    suite = tiny(tmp_path, steps=1_000_000, minutes=0.1)
    code = main(words(tmp_path, suite, "--only", "metric=accuracy"))
    found = [(one.status, one.fault, one.message) for one in members(tmp_path)]
    assert code == 1
    assert found == [("failed", "timeout", "stopped after 0.1 minutes")] * 2


def test_a_second_driver_on_the_same_results_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = tiny(tmp_path, steps=1_000_000)
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    first = subprocess.Popen([sys.executable, "-m", "grape_bench", *words(tmp_path, suite)], **silent)
    try:
        wait_for(lambda: lines(tmp_path) >= 1)
        assert main(words(tmp_path, suite)) == 2
        assert "another run writes to" in capsys.readouterr().err
    finally:
        below = psutil.Process(first.pid).children(recursive=True)
        first.terminate()
        assert first.wait(30) == 75
    _, alive = psutil.wait_procs(below, timeout=20)
    assert [command(one) for one in alive] == [], "all ends with the driver"


def test_an_address_where_no_cluster_answers_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words(tmp_path, tiny(tmp_path), "--address", "127.0.0.1:1")) == 2
    assert "the cluster at 127.0.0.1:1 cannot be reached" in capsys.readouterr().err
