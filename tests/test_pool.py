"""Records read from files: which lines are refused, and how long a hundred thousand take, in how much memory."""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from grape_bench.cell import CostCell
from grape_bench.errors import UserError
from grape_bench.pool import Pooled, pool
from grape_bench.record import Record
from grape_bench.store import Store
from grape_bench.suite import expand, parse

HOME = Path(__file__).resolve().parents[1]
PER_MACHINE = 7600  # records of the suite below on one machine, each time in five processes
MANY = """title: As many records as people might hand in
baseline: none
encodings: [none, {encodings}]
seeds: [0, 1, 2, 3, 4, 5, 6, 7]
cost:
  - {{lengths: [256, 512, 1024], heads: [4, 8], dtypes: [float32, bfloat16], metrics: [forward_ms]}}
  - {{lengths: [256, 512, 1024], heads: [4, 8], dtypes: [float32, bfloat16], metrics: [forward_backward_ms]}}
  - {{lengths: [256, 512, 1024], heads: [4, 8], metrics: [peak_mib]}}
  - {{scope: model, lengths: [64, 128], heads: [4], head_dim: [16], metrics: [train_step_ms]}}
accuracy:
  - {{task: registers, train_length: 64, test_lengths: [64, 128, 256, 512]}}
  - {{task: short_text, train_length: 48, test_lengths: [48, 96, 192]}}
"""


@pytest.fixture
def kept(make_record: Callable[..., Record], tmp_path: Path) -> Path:
    """The file of three records."""
    store = Store(tmp_path)
    with store.writing("here", "few") as writer:
        writer.append(
            make_record(CostCell(metric="forward_ms", encoding="rope", length=length), suite="few")
            for length in (64, 128, 256)
        )
    return store.path("here", "few")


def read(path: Path) -> Pooled:
    return pool({path: "results/"})


@pytest.mark.parametrize("line", ['{"kind": "recor', '{"kind": "record"}', "[]", '{"kind": "record", "at": NaN}'])
def test_a_line_that_is_no_record_is_named(kept: Path, line: str) -> None:
    kept.write_text(f"{kept.read_text(encoding='utf-8')}{line}\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"here/few\.jsonl:4: no record"):
        read(kept)


def test_a_sample_that_is_no_number_is_named(kept: Path) -> None:
    lines = kept.read_text(encoding="utf-8").splitlines()
    sample = str(json.loads(lines[1])["reading"]["samples_ms"][3])
    kept.write_text("\n".join([lines[0], lines[1].replace(sample, "NaN", 1), lines[2], ""]), encoding="utf-8")
    with pytest.raises(UserError, match=r"here/few\.jsonl:2: no record"):
        read(kept)


def test_a_last_line_cut_short_counts_for_nothing(kept: Path) -> None:
    whole = read(kept)
    kept.write_text(f'{kept.read_text(encoding="utf-8")}{{"kind": "record", "sch', encoding="utf-8")
    assert read(kept) == whole
    assert [one.records for one in whole.sources] == [3]


class Ran(NamedTuple):
    seconds: float
    peak_mib: float


@pytest.mark.parametrize("count", [20_000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_it_reads_many_records(
    count: int,
    make_record: Callable[..., Record],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_many(Path("results"), count, make_record)
    ran = measured([sys.executable, "-m", "grape_bench", "leaderboard"])
    with capsys.disabled():
        sys.stdout.write(f"\n{count:,} records: {ran.seconds:.1f} s, {ran.peak_mib:,.0f} MiB at most\n")
    assert ran.peak_mib < 2048
    page = Path("reports", "leaderboard.md").read_text(encoding="utf-8")
    assert page.count("### machine-") == -(-count // PER_MACHINE)


def write_many(folder: Path, count: int, make_record: Callable[..., Record]) -> None:
    """So many records of 50 encodings, machine after machine."""
    suite = parse(MANY.format(encodings=", ".join(f"rope(base={1000 * n})" for n in range(1, 50))), "many.yaml")
    records = [make_record(cell, suite="many").model_dump(mode="json", by_alias=True) for cell in expand(suite)]
    for number in range(-(-count // PER_MACHINE)):
        path = folder / f"machine-{number}" / "many.jsonl"
        path.parent.mkdir(parents=True)
        lines = list(one_machine(records, path.parent.name))[: count - PER_MACHINE * number]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def one_machine(records: list[dict[str, Any]], name: str) -> Iterator[str]:
    """All cells on one machine, each time in five processes."""
    rng = random.Random(name)
    for one in records:
        own = {"environment": one["environment"] | {"machine": name, "cpu": name}, "run": f"run-{name}"}
        for process in range(5 if one["reading"]["kind"] == "time" else 1):
            if one["reading"]["kind"] == "time":
                slower = rng.gauss(1, 0.02)
                own["reading"] = one["reading"] | {"samples_ms": [ms * slower for ms in one["reading"]["samples_ms"]]}
            block = [one["cell"].get(key) for key in ("metric", "length", "heads", "dtype", "seed")]
            yield json.dumps(one | own | {"block_run": f"{process} {block}"})


def measured(command: list[str]) -> Ran:
    """Time and peak memory of a command in a process of its own."""
    began = time.perf_counter()
    with subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(HOME)}, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return Ran(time.perf_counter() - began, usage.ru_maxrss / 1024)
