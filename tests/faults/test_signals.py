"""Runs that a scheduler, a user or a limit stops, and clocks that jump: what is recorded stands, the rest is named."""

import os
import re
import signal

import pytest

JUMP = """
import sys
from datetime import datetime
from grape_bench import timing
from grape_bench.cli import main

class Clock(datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime({year}, 1, 1, tzinfo=tz)

timing.datetime = Clock
sys.exit(main())
"""


def listen() -> None:
    """A shell starts what runs in its background with Ctrl-C ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def left(said: str) -> int:
    """How many cells a stopped run says are left."""
    found = re.search(r"(\d+) cells? in \d+ blocks?.* left", said)
    assert found, said
    return int(found[1])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_ends_a_run_with_75_and_the_next_goes_on(bench, wait_for, name: str) -> None:
    """A scheduler signals the whole job: no worker's death is taken for its fault."""
    bench.suite(trained="none, rope", seeds=4, steps=60)
    runner = bench.start(preexec_fn=listen)
    wait_for(lambda: len(bench.members()) >= 2 and bench.workers())
    os.killpg(runner.pid, signal.Signals[name])
    assert runner.wait(timeout=30) == 75, bench.said()
    before = bench.members()
    assert {one.status for one in before} == {"ok"}
    assert f"stopped early: {name}" in bench.said()
    assert left(bench.said()) == 8 - len(before) > 0
    wait_for(lambda: not bench.alive())
    code, _ = bench.run()
    assert code == 0
    assert len({one.id for one in bench.members()}) == len(bench.members()) == 8


@pytest.mark.slow
def test_a_signal_before_anything_is_measured_is_75_too(bench, wait_for) -> None:
    bench.suite("none, rope")
    runner = bench.start()
    wait_for(lambda: len(bench.alive()) > 1)  # the fork server is there, and loads torch
    runner.send_signal(signal.SIGTERM)
    assert runner.wait(timeout=30) == 75, bench.said()
    wait_for(lambda: not bench.alive())


@pytest.mark.slow
def test_a_time_limit_ends_a_run_with_75_and_says_what_is_left(bench, wait_for) -> None:
    bench.suite("none, rope", "none", steps=1_000_000)
    code, said = bench.run("--limit-minutes=0.25")
    assert code == 75, said
    assert "stopped early: the time limit is reached" in said
    assert left(said) == 3 - len(bench.members()) > 0
    assert all(one.cell.kind == "cost" for one in bench.members()), "what was under way has no record"
    wait_for(lambda: not bench.alive())


@pytest.mark.slow
def test_a_cost_block_that_would_not_end_in_time_is_not_begun(bench) -> None:
    """Its like took ten minutes by the records; a training beside it is begun and ends."""
    bench.suite("none, rope", "none")
    assert bench.run()[0] == 0
    lines = bench.path().read_text().splitlines(keepends=True)
    slow = [re.sub(r'"seconds":[^,]+', '"seconds":600.0', one) for one in lines if '"kind":"accuracy"' not in one]
    bench.path().write_text("".join(slow))
    bench.suite("none, rope, alibi", "none")
    code, said = bench.run("--limit-minutes=5")
    assert code == 75
    assert [(one.cell.kind, one.cell.encoding) for one in bench.members()][2:] == [("accuracy", "none")]
    assert "2 cells in 1 block, about 10 min left" in said, "alibi, and its baseline"


@pytest.mark.slow
def test_a_clock_that_goes_back_hides_no_later_attempt(bench) -> None:
    """A failure in 2030, its retry in 2020 by the wall clock: the retry is what counts, and both are on record."""
    then, now = (("-c", JUMP.format(year=year)) for year in (2030, 2020))
    bench.suite("none, rope", "none", minutes=0.0001)
    assert bench.run(python=then)[0] == 1
    failed = [one for one in bench.members() if one.status == "failed"]
    assert {one.fault for one in failed} == {"timeout"}
    bench.suite("none, rope", "none")
    assert bench.run("--retry-failed", python=now)[0] == 0
    moments = [one.at for one in bench.lines()]
    assert moments == sorted(moments)
    assert bench.members()[-1].at > bench.members()[2].at, "readers go by it"
    assert "timeout" not in bench.report()
    assert "stopped after" not in bench.report()
    code, said = bench.run(python=then)
    assert (code, len(bench.members())) == (0, 5), said
