"""Cells that end badly in real processes: the rest goes on, and the reason is in record and report."""

import signal

import pytest

BAD = "Segfault Hang Hog Bomb"


@pytest.mark.slow
def test_each_fault_stops_one_cell_and_says_why(bench) -> None:
    """A segmentation fault, a hang, an allocation beyond the limit and a loss that is nan, all in one suite."""
    bench.suite("none, rope, Segfault, Hog, Hang", "none, rope, Bomb, Segfault", minutes=0.1)
    code, said = bench.run("--max-memory=2", plugins=BAD)
    assert code == 1, said
    found = {(one.cell.encoding, one.cell.kind): one for one in bench.members()}
    assert len(found) == len(bench.members()) == 9, "each cell has one record"
    ends = {key: (one.status, one.fault) for key, one in found.items()}
    assert ends == {
        ("none", "cost"): ("ok", None),
        ("rope", "cost"): ("ok", None),
        ("Segfault", "cost"): ("failed", "error"),
        ("Hog", "cost"): ("failed", "oom"),
        ("Hang", "cost"): ("failed", "timeout"),
        ("none", "accuracy"): ("ok", None),
        ("rope", "accuracy"): ("ok", None),
        ("Bomb", "accuracy"): ("failed", "nan"),
        ("Segfault", "accuracy"): ("failed", "error"),
    }
    sentences = ("signal SIGSEGV", "this run gives a worker 2 GiB", "stopped after 0.1 minutes", "the loss is nan")
    messages, report = [str(one.message) for one in found.values()], bench.report()
    for sentence in sentences:
        assert any(sentence in one for one in messages), messages
        assert sentence in report, sentence
    code, _ = bench.run(plugins=BAD)
    assert (code, len(bench.members())) == (1, 9), "a failed cell is done"


def test_a_worker_that_is_killed_in_a_timed_block_costs_one_member(bench, wait_for) -> None:
    bench.suite("none, rope, clamp", "none, rope, clamp", steps=4)
    runner = bench.start()
    wait_for(lambda: list(bench.results.glob("*/tiny.jsonl")))  # the process that looks at the machine has ended
    wait_for(bench.workers)[0].send_signal(signal.SIGKILL)
    assert runner.wait(timeout=120) == 1, bench.said()
    assert "5 measured, 0 known, 0 skipped, 1 failed" in bench.said()
    (killed,) = [one for one in bench.members() if one.status != "ok"]
    assert (killed.status, killed.fault, killed.cell.metric) == ("failed", "killed", "forward_ms")
    assert "SIGKILL" in killed.message
    rest = {one.block_run for one in bench.members() if one.status == "ok" and one.cell.kind == "cost"}
    assert len(rest) == 1, "still side by side"


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_its_cell_alone(bench, wait_for) -> None:
    bench.suite(trained="none, rope, alibi, t5", steps=400)
    runner = bench.start()
    wait_for(lambda: list(bench.results.glob("*/tiny.jsonl")))  # the process that looks at the machine has ended
    wait_for(bench.workers)[0].send_signal(signal.SIGKILL)
    assert runner.wait(timeout=120) == 1, bench.said()
    ends = sorted((one.status, one.fault or "") for one in bench.members())
    assert ends == [("failed", "killed"), *[("ok", "")] * 3]
    assert "signal SIGKILL" in bench.report()
    assert bench.run("--retry-failed")[0] == 0
    assert sorted(one.status for one in bench.members()) == ["failed", *["ok"] * 4]
