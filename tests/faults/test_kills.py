"""A runner that is killed, once and fifty times, at moments that chance picks, and then let be."""

import os
import random
import signal
import time
from collections import Counter

import pytest

KILLS = 50


def outcomes(members) -> dict:
    """What became of each cell: its status and, of a training, its scores, which depend on its seed alone."""
    return {one.id: (one.status, getattr(one.reading, "scores", None)) for one in members}


def test_after_a_kill_the_next_run_does_only_what_is_missing(bench, wait_for) -> None:
    bench.suite("none, rope", "none, rope", seeds=4, steps=30)
    runner = bench.start()
    wait_for(lambda: sum(one.cell.kind == "accuracy" for one in bench.members()) >= 2)
    os.kill(runner.pid, signal.SIGKILL)
    runner.wait()
    wait_for(lambda: not bench.alive(), seconds=10)  # workers end with their runner
    done = {one.id for one in bench.members()}
    assert 4 <= len(done) < 10, "in the middle"

    code, said = bench.run()
    assert code == 0, said
    assert f"{10 - len(done)} measured, {len(done)} known" in said
    after = bench.members()
    assert len({one.id for one in after}) == len(after) == 2 + 8
    assert len({one.reading.data_sha for one in after if one.cell.kind == "accuracy"}) == 4, "one a seed"


@pytest.mark.slow
def test_fifty_kills_and_one_resume_come_to_what_an_undisturbed_run_does(bench, wait_for) -> None:
    chance = random.Random(8)
    bench.suite("none, rope, alibi", "none, rope", seeds=60, steps=30)
    killed = sum(_kill_one(bench, chance, wait_for) for _ in range(KILLS))
    assert killed == KILLS, "the suite was done before the last kill: it must be larger"
    before = bench.members()
    assert 10 < len(before) < 123, "in the middle"
    code, said = bench.run()
    assert code == 0, said
    disturbed = bench.members()

    bench.path().unlink()
    assert bench.run()[0] == 0
    undisturbed = bench.members()
    assert outcomes(disturbed) == outcomes(undisturbed)
    assert len(outcomes(disturbed)) == 3 + 120
    counts = Counter(one.id for one in disturbed if one.cell.encoding != "none" or one.cell.kind == "accuracy")
    assert set(counts.values()) == {1}, "none is doubled"


def _kill_one(bench, chance: random.Random, wait_for) -> int:
    """Kill one run while it starts, or after a few records; 1 where it had not ended by itself."""
    known = _records(bench)
    runner = bench.start()
    if chance.random() < 0.3:
        time.sleep(chance.uniform(0.0, 3.0))
    else:
        wait_for(lambda: runner.poll() is not None or _records(bench) > known)
        time.sleep(chance.expovariate(1 / 0.15))
    os.kill(runner.pid, signal.SIGKILL)
    ended = runner.wait()
    wait_for(lambda: not bench.alive(), seconds=10)  # workers end with their runner
    return ended == -signal.SIGKILL


def _records(bench) -> int:
    return sum(path.read_bytes().count(b'"kind":"record"') for path in bench.results.glob("*/tiny.jsonl"))
