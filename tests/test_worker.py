"""What a worker makes of a block, in this process."""

import shutil
import sysconfig
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from grape_bench import timing, worker
from grape_bench.cell import AccuracyCell, Block, CostCell, ModelOptions, TrainingOptions
from grape_bench.encodings.rope import Rope
from grape_bench.record import MemoryReading, TimeReading

SMALL = {"length": 24, "heads": 2, "head_dim": 8}


@pytest.fixture(autouse=True)
def _threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)
    torch.set_flush_denormal(False)


def block(*encodings, metric="forward_ms", **more):
    return Block(tuple(CostCell(metric=metric, encoding=one, **(SMALL | more)) for one in encodings), 0)


def measure(one, **protocol):
    return worker.measure(one, worker.Protocol(device="cpu", **protocol), lambda note: None)


def test_members_and_the_control_are_timed_in_the_same_rounds():
    done = measure(block("none", "rope"))
    assert [(one.cell.encoding, one.role, one.status) for one in done.results] == [
        ("none", "member", "ok"),
        ("rope", "member", "ok"),
        ("none", "control", "ok"),
    ]
    readings = [one.reading for one in done.results]
    assert {len(one.samples_ms) for one in readings} == {2 * timing.EFFORTS["quick"].pairs}
    assert len({one.sentinel_ms for one in readings}) == 1
    assert all(0 < one.overhead_ms < min(one.samples_ms) * one.inner for one in readings)


def test_a_mutated_encoding_gets_no_time_and_is_named(monkeypatch):
    rotate = Rope.rotate

    def late(self, q, k, features, at):
        """Queries a token late, in single precision alone, so that the float64 oracle disagrees."""
        return rotate(self, q, k, features, replace(at, q_pos=at.q_pos + (q.dtype == torch.float32), tables={}))

    monkeypatch.setattr(Rope, "rotate", late)
    done = measure(block("none", "rope", "alibi"))
    refused = [one for one in done.results if one.status != "ok"]
    assert [(one.cell.encoding, one.fault, one.reading) for one in refused] == [("rope", "gate", None)]
    assert "rope" in refused[0].message
    assert [one.cell.encoding for one in done.results if one.status == "ok"] == ["none", "alibi", "none"]


def test_a_relative_law_that_does_not_hold_is_refused(monkeypatch):
    rotate = Rope.rotate

    def bent(self, q, k, features, at):
        return rotate(self, q, k, features, replace(at, q_pos=at.q_pos**1.01, k_pos=at.k_pos**1.01, tables={}))

    monkeypatch.setattr(Rope, "rotate", bent)
    (refused,) = [one for one in measure(block("none", "rope")).results if one.status != "ok"]
    assert refused.fault == "gate"
    assert "declares to be relative" in refused.message


def test_a_skip_is_no_failure_and_the_rest_goes_on():
    done = measure(block("none", "alibi(form='causal')"))
    assert [one.status for one in done.results if one.cell.encoding != "none"] == ["skipped"]


def test_memory_is_watched_member_by_member():
    (one,) = measure(block("none", metric="peak_mib")).results
    assert isinstance(one.reading, MemoryReading)
    assert one.reading.peak_mib > 0


def test_a_busy_machine_refuses_wall_time(monkeypatch):
    monkeypatch.setattr(timing.psutil, "cpu_percent", lambda interval: 90.0)
    done = measure(block("none"), threads=torch.get_num_threads() + 1)
    assert [(one.status, one.fault) for one in done.results] == [("failed", "throttled")]
    assert "idle cores" in done.results[0].message


def test_an_idle_machine_is_timed_by_the_wall_clock_on_several_threads(monkeypatch):
    monkeypatch.setattr(timing.psutil, "cpu_percent", lambda interval: 0.0)
    (one, _) = measure(block("none"), threads=2).results
    assert isinstance(one.reading, TimeReading)
    assert (one.reading.clock, one.reading.threads) == ("perf_counter", 2)


def test_a_loss_that_is_no_number_is_a_failure_of_its_own_kind():
    cell = AccuracyCell(
        task="registers(registers=2, writes=2, pairs=2)",
        encoding="none",
        seed=0,
        train_length=16,
        test_lengths=(16,),
        model=ModelOptions(width=16, heads=2),
        training=TrainingOptions(steps=40, batch=4, lr=10.0, warmup=0, clip=1e30, weight_decay=1e30, test_examples=4),
    )
    (result,) = measure(Block((cell,))).results
    assert (result.status, result.fault) == ("failed", "nan")


def test_out_of_memory_is_told_from_other_errors(monkeypatch):
    def starve(cell, device, **how):
        torch.empty(2**60, dtype=torch.uint8)

    monkeypatch.setattr(worker.gate, "check", starve)
    (result,) = measure(block("none")).results
    assert result.fault == "oom"


@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler")
@pytest.mark.skipif(not Path(sysconfig.get_path("include"), "Python.h").exists(), reason="inductor needs Python.h")
@pytest.mark.skipif(" " in torch.__file__, reason="inductor does not quote the path of torch, which has a space here")
def test_compiling_is_measured_apart_from_running():
    (one,) = measure(block("rope", metric="compile_ms")).results
    assert one.status == "ok", one.message
    assert one.reading.samples_ms[0] > 100, "inductor takes longer than this for any kernel"
