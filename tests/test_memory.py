"""Peaks against sizes counted by hand, in a fresh process as a measurement would be."""

import json
import subprocess
import sys

import pytest

from grape_bench import memory

# H = 4 heads, T = 512 tokens, D = 64 channels: a matrix of scores is 4 MiB, one of queries 0.5, a mask of bytes 0.25.
MIB = 2**20
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


class Cuda:
    """A caching allocator in whole MiB; the first call of an operation leaves a workspace behind, as cuBLAS does."""

    def __init__(self):
        self.allocated = self.reserved = 100 * MIB  # inputs and weights
        self.highest = self.most_reserved = self.allocated
        self.asked = []

    def take(self, mib):
        self.allocated += mib * MIB
        self.reserved = max(self.reserved, self.allocated)
        self.highest, self.most_reserved = max(self.highest, self.allocated), max(self.most_reserved, self.reserved)

    def synchronize(self):
        self.asked.append("synchronize")

    def empty_cache(self):
        self.asked.append("empty_cache")
        self.reserved = self.allocated

    def reset_peak_memory_stats(self):
        self.asked.append("reset")
        self.highest, self.most_reserved = self.allocated, self.reserved

    def memory_allocated(self):
        return self.allocated

    def max_memory_allocated(self):
        return self.highest

    def max_memory_reserved(self):
        return self.most_reserved

    def get_allocator_backend(self):
        return "native"


def cuda_peak(first_mib, *, configured=""):
    cuda, calls = Cuda(), []

    def operation():
        if not calls:
            cuda.take(first_mib)  # stays
        calls.append(None)
        cuda.take(32)
        cuda.take(-32)
        cuda.take(20)
        cuda.take(-20)

    return memory.cuda_peak(operation, cuda, configured), cuda


def test_the_peak_on_a_gpu_is_over_what_was_there_before_the_call():
    reading, _ = cuda_peak(0)
    assert reading.peak_mib == 32
    assert reading.reserved_mib == 132


def test_workspaces_that_a_first_call_leaves_are_not_the_operations():
    reading, _ = cuda_peak(8)
    assert reading.peak_mib == 32
    assert reading.reserved_mib == 140


def test_the_device_is_idle_and_its_cache_empty_before_a_peak_is_begun():
    _, cuda = cuda_peak(0)
    assert cuda.asked == ["synchronize", "empty_cache", "reset", "synchronize"]


def test_a_peak_on_a_gpu_names_its_allocator():
    assert cuda_peak(0)[0].allocator == "native, as it comes"
    assert cuda_peak(0, configured="expandable_segments:True")[0].allocator == "native, expandable_segments:True"


def test_the_configuration_of_the_allocator_is_read_by_its_newer_name_first(monkeypatch):
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    monkeypatch.delenv("PYTORCH_ALLOC_CONF", raising=False)
    assert memory.configured() == "expandable_segments:True"
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", "backend:cudaMallocAsync")
    assert memory.configured() == "backend:cudaMallocAsync"


def test_a_record_of_a_cpu_has_no_word_of_an_allocator(readings):
    assert "allocator" not in readings["attention"]


BOUNDED = """
import resource
from grape_bench import memory

hard = resource.RLIM_INFINITY if {hard} is None else {hard}
resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
memory.bound(0.5, "cpu")
print(resource.getrlimit(resource.RLIMIT_DATA)[0])
try:
    bytearray(2**30)
except MemoryError:
    print("refused")
"""


@pytest.mark.parametrize(("hard", "limit"), [(None, 2**29), (2**30, 2**29), (2**28, 2**28)])
def test_a_bound_refuses_what_goes_beyond_it_and_never_raises_that_of_a_scheduler(hard, limit):
    pytest.importorskip("resource")
    script = BOUNDED.format(hard=hard)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == [str(limit), "refused"], done.stderr
