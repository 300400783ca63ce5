"""scripts/gpu.sh and what it calls: its words, the tiny suites of a rehearsal, the summary, the rehearsal itself."""

import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from grape_bench.environment import Environment
from grape_bench.record import Record, TimeReading
from grape_bench.store import Store
from grape_bench.suite import Suite, expand, load

HOME = Path(__file__).resolve().parents[1]
SCRIPT = HOME / "scripts" / "gpu.sh"
SUITES = ("gpu-cost", "fused", "memory", "long", "gpu-accuracy")


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, HOME / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def bash(*words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    own = {**os.environ, "PYTHON": sys.executable, **environment}
    return subprocess.run(["bash", *words], cwd=HOME, env=own, capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Suite]:
    folder = tmp_path_factory.mktemp("tiny")
    script("tiny_suites").main(folder, [HOME / "suites" / f"{name}.yaml" for name in SUITES])
    return {name: load(folder / f"{name}.yaml") for name in SUITES}


def test_its_syntax_is_sound() -> None:
    assert bash("-n", str(SCRIPT)).returncode == 0


def test_an_unknown_option_is_refused() -> None:
    done = bash(str(SCRIPT), "--reherse")
    assert done.returncode == 2
    assert "takes --rehearse or nothing" in done.stderr


def test_it_looks_for_every_package_that_a_run_imports() -> None:
    """DuckDB alone is not asked for: only the leaderboard reads with it."""
    names = {"pyyaml": "yaml", "nvidia-ml-py": "pynvml"}
    project = tomllib.loads((HOME / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {re.split(r"[<>=]", one)[0] for one in project["dependencies"]}
    found = re.search(r"needed=\(([^)]*)\)", SCRIPT.read_text(encoding="utf-8"))
    assert found is not None
    assert set(found[1].split()) - {"pytest"} == {names.get(one, one) for one in wanted - {"duckdb"}}


def test_it_runs_every_suite_that_it_makes_tiny() -> None:
    text = SCRIPT.read_text(encoding="utf-8")
    assert set(re.findall(r"^suite (\S+)", text, re.MULTILINE)) == set(SUITES)
    shares = re.findall(r"^(?:suite|tests) \S+ (\d+)", text, re.MULTILINE)
    assert sum(map(int, shares)) == 100


def axes(suite: Suite) -> dict[str, set[Any]]:
    cells = expand(suite)
    keys = ("kind", "encoding", "metric", "backend", "dtype", "scope", "causal", "task")
    return {key: {getattr(one, key, None) for one in cells} for key in keys}


@pytest.mark.parametrize("name", SUITES)
def test_a_tiny_suite_asks_for_the_same_at_small_sizes(name: str, tiny: dict[str, Suite]) -> None:
    whole, small = load(HOME / "suites" / f"{name}.yaml"), tiny[name]
    assert axes(small) == axes(whole)
    assert (small.vary, small.baseline) == (whole.vary, whole.baseline)
    for one in expand(small):
        assert (one.length if one.kind == "cost" else max(one.test_lengths)) <= 48


def test_a_tiny_suite_still_has_grouped_heads(tiny: dict[str, Suite]) -> None:
    decoding = [one for one in expand(tiny["long"]) if one.metric == "decode_ms"]
    assert {(one.heads, one.kv_heads) for one in decoding} == {(2, None), (2, 1)}  # type: ignore[union-attr]


def test_the_suites_of_a_gpu_are_what_they_say() -> None:
    long = expand(load(HOME / "suites" / "long.yaml"))
    assert max(one.length for one in long) == 131_072  # type: ignore[union-attr]
    assert {(one.metric, one.kv_heads) for one in long if one.metric == "decode_ms"} == {  # type: ignore[union-attr]
        ("decode_ms", None),
        ("decode_ms", 8),
    }
    cost = expand(load(HOME / "suites" / "gpu-cost.yaml"))
    assert max(one.length for one in cost) == 32_768  # type: ignore[union-attr]
    assert {one.dtype for one in (*long, *cost)} == {"bfloat16"}


def test_the_summary_tells_steps_ratios_and_shares(
    tmp_path: Path, make_record: Callable[..., Record], environment: Environment
) -> None:
    here = environment.model_copy(update={"device": "NVIDIA H200", "machine": "nvidia-h200", "driver": "580.1"})
    store = Store(tmp_path / "results")
    for name, milliseconds in (("fused", {"rope": 2.0, "alibi": 3.0}), ("gpu-cost", {"none": 1.0})):
        cells = expand(load(HOME / "suites" / f"{name}.yaml"))
        some = [one for one in cells if one.encoding in milliseconds and one.backend == "auto"]
        records = [
            make_record(one, suite=name, environment=here, reading=reading(milliseconds[one.encoding])) for one in some
        ]
        with store.writing(here.machine, name) as writer:
            writer.append(records)
    steps = tmp_path / "steps.tsv"
    steps.write_text("fused\t61\t0\nmemory\t90\t124\n", encoding="utf-8")
    text = script("gpu_summary").main(steps, tmp_path / "results", HOME / "suites")
    assert "NVIDIA H200, torch 2.99.0, driver 580.1" in text
    assert re.search(r"\| fused +\| +61 \| +\|", text)
    assert re.search(r"\| memory +\| +90 \| +out of time \|", text)
    assert "▲ 1.500" in text  # alibi's 3 ms over rope's 2
    # At 32768 tokens, forward: 2 products, 2 operations, 16 heads of 128 channels, half of the pairs; in 1 ms.
    share = 100 * 2 * 2 * 16 * 128 * (32_768 * 32_769 / 2) / 1e-3 / 989e12
    assert f"{share:.1f} %" in text


def reading(milliseconds: float) -> TimeReading:
    return TimeReading(samples_ms=(milliseconds,) * 6, wall_ms=(milliseconds,) * 6, clock="cuda_event")


@pytest.mark.slow
def test_the_rehearsal_runs_every_step(tmp_path: Path) -> None:
    done = bash(str(SCRIPT), "--rehearse", GRAPE_DEVICE="cpu", OUT=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    (machine,) = (tmp_path / "results").iterdir()
    assert {one.stem for one in machine.iterdir()} == set(SUITES)
    for name in SUITES:
        records = list(Store(tmp_path / "results").records(name))
        assert records, name
        assert {one.status for one in records} <= {"ok", "skipped"}
    with tarfile.open(tmp_path / "reports.tar.gz") as archive:
        assert {f"./{name}.html" for name in SUITES} <= set(archive.getnames())
    assert len([one for one in tmp_path.rglob("*") if one.is_file()]) == len(SUITES) + 3
