"""Peaks against sizes counted by hand, in a fresh process as a measurement would be."""

import json
import subprocess
import sys

import pytest

# H = 4 heads, T = 512 tokens, D = 64 channels: a matrix of scores is 4 MiB, one of queries 0.5, a mask of bytes 0.25.
SCORES, VECTORS, BYTES = 4.0, 0.5, 0.25
SCRIPT = """
import json
import torch
from grape_bench import memory

torch.set_num_threads(1)
H, T, D = 4, 512, 64
q, k, v = (torch.randn(1, H, T, D, requires_grad=True) for _ in range(3))
direction = torch.randn(1, H, T, D)
kept = []

def attention():
    hidden = torch.ones(T, T, dtype=torch.bool).triu(1)
    scores = (q @ k.transpose(-1, -2) * D**-0.5).masked_fill(hidden, float("-inf"))
    out = scores.softmax(-1) @ v
    return torch.autograd.grad(out, (q, k, v), direction)

def unmasked():
    out = (q @ k.transpose(-1, -2)).softmax(-1) @ v
    return out, torch.autograd.grad(out, (q, k, v), direction)

def temporary():
    torch.ones(20 * 2**18)
    return torch.ones(3 * 2**18)

def output():
    return torch.ones(7 * 2**18)

def nothing():
    return q.sum()

operations = {one.__name__: one for one in (attention, unmasked, temporary, output, nothing)}
readings = {name: memory.peak(one, "cpu").model_dump() for name, one in operations.items()}
readings["again"] = memory.peak(attention, "cpu").model_dump()
print(json.dumps(readings))
"""


@pytest.fixture(scope="module")
def readings() -> dict[str, dict[str, float]]:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_attention_peaks_in_its_backward_pass(readings: dict[str, dict[str, float]]) -> None:
    """Masked scores, weights and the gradients of both; outputs, the gradient of v, and the mask."""
    expected = 4 * SCORES + 2 * VECTORS + BYTES
    assert expected == 17.25
    assert readings["attention"]["peak_mib"] == pytest.approx(expected, rel=0.01)


def test_what_is_not_kept_for_the_backward_pass_is_not_counted(readings: dict[str, dict[str, float]]) -> None:
    """Without a mask nobody holds the scores: weights and two gradients, outputs and the gradient of v."""
    assert readings["unmasked"]["peak_mib"] == pytest.approx(3 * SCORES + 2 * VECTORS, rel=0.01)


def test_a_temporary_counts_at_its_time_alone(readings: dict[str, dict[str, float]]) -> None:
    assert readings["temporary"]["peak_mib"] == pytest.approx(20.0, rel=0.01)


def test_outputs_are_held_until_the_peak_is_known(readings: dict[str, dict[str, float]]) -> None:
    assert readings["output"]["peak_mib"] == pytest.approx(7.0, rel=0.01)


def test_inputs_are_not_counted(readings: dict[str, dict[str, float]]) -> None:
    assert readings["nothing"]["peak_mib"] < 0.01


def test_the_allocator_counts_the_same_each_time(readings: dict[str, dict[str, float]]) -> None:
    assert readings["again"]["peak_mib"] == readings["attention"]["peak_mib"]


@pytest.mark.parametrize("name", ["attention", "unmasked", "temporary", "output"])
def test_resident_memory_agrees_with_the_allocator(readings: dict[str, dict[str, float]], name: str) -> None:
    resident = readings[name]["resident_mib"]
    if resident is None:
        pytest.skip("this kernel does not let a process reset its high-water mark")
    assert resident == pytest.approx(readings[name]["peak_mib"], rel=0.05)


def test_a_device_that_is_not_asked_for_has_no_figure(readings: dict[str, dict[str, float]]) -> None:
    assert readings["attention"]["reserved_mib"] is None
