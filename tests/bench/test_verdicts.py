"""The gate's judgement on made-up runs; the benchmarks themselves run in `tox -e bench`."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

spec = importlib.util.spec_from_file_location("bench_gate", Path(__file__).with_name("gate.py"))
assert spec is not None
assert spec.loader is not None
gate = importlib.util.module_from_spec(spec)
spec.loader.exec_module(gate)


@pytest.fixture
def save(tmp_path):
    """Save a run whose work takes `factor` times as long, on a machine that is `slow` times as slow."""

    def run(number, factor=1.0, slow=1.0, machine="toy"):
        rng = np.random.default_rng(number)
        laps = slow * np.exp(rng.normal(0, 0.1, 12))  # what slows a round slows the reference beside it
        data = 5 * factor * laps * np.exp(rng.normal(0, 0.03, 12))
        one = {
            "fullname": "bench.py::bench_ranking",
            "stats": {"data": data.tolist()},
            "extra_info": {"inner": 1, "reference_s": laps.tolist()},
        }
        info = {"machine": machine, "python_version": "3.11.0", "torch": "2.99"}
        path = tmp_path / "Linux" / f"{number:04d}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"machine_info": info, "benchmarks": [one]}), encoding="utf-8")

    return run


def test_the_first_run_has_nothing_to_be_held_against(save, tmp_path, capsys):
    save(1)
    assert gate.main(tmp_path) == 0
    assert "no earlier run of this machine" in capsys.readouterr().out


@pytest.mark.parametrize("slow", [0.5, 1.0, 3.0])
def test_a_slower_machine_is_no_slower_harness(save, tmp_path, slow):
    save(1)
    save(2, slow=slow)
    assert gate.main(tmp_path) == 0


def test_thirty_per_cent_more_work_fails(save, tmp_path, capsys):
    save(1)
    save(2)
    save(3, factor=1.3)
    assert gate.main(tmp_path) == 3
    assert "slower" in capsys.readouterr().out


def test_a_harness_that_slows_by_little_each_time_is_held_against_the_first(save, tmp_path):
    for number in range(5):
        save(number, factor=1.08**number)
    assert gate.main(tmp_path) == 3


def test_runs_of_another_machine_are_passed_over(save, tmp_path):
    save(1, machine="another")
    save(2, factor=2)
    assert gate.main(tmp_path) == 0
