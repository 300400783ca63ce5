"""Disks that are full, closed or shared: what stands stays whole, and the sentence says what to do."""

import ctypes
import os
import resource
import signal

import pytest


def small_files(size: int):
    """No file of the process or its children grows beyond so many bytes, as on a disk that is full."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


@pytest.mark.slow
def test_a_full_disk_stops_a_run_and_leaves_whole_records(bench) -> None:
    bench.suite(trained="none, rope", seeds=3)
    assert bench.run()[0] == 0
    whole = {one.id: one.reading.scores for one in bench.members()}
    size = bench.path().stat().st_size
    bench.path().unlink()

    code, said = bench.run(preexec_fn=small_files(size // 2))
    assert code == 75, said
    assert "tiny.jsonl cannot be written: " in said
    text = bench.path().read_bytes()
    assert text.endswith(b"\n"), "no torn line"
    assert 0 < len(bench.members()) < 6

    code, said = bench.run()
    assert code == 0, said
    assert {one.id: one.reading.scores for one in bench.members()} == whole
    assert len(bench.members()) == 6


def no_override() -> None:
    """Root may write anywhere by a capability, which the program that is started next will lack."""
    drop, override = 24, 1
    if os.geteuid() == 0:
        ctypes.CDLL(None).prctl(drop, override, 0, 0, 0)


@pytest.mark.slow
def test_results_that_cannot_be_written_are_refused_before_anything_is_measured(bench) -> None:
    bench.suite("none, rope")
    bench.results.mkdir()
    bench.results.chmod(0o555)
    code, said = bench.run(preexec_fn=no_override)
    assert code == 2, said
    assert "cannot be written: Permission denied; name another folder with --results" in said
    assert not list(bench.results.iterdir())


@pytest.mark.slow
def test_a_record_file_that_is_read_only_is_refused(bench) -> None:
    bench.suite("none, rope")
    assert bench.run()[0] == 0
    bench.path().chmod(0o444)
    before = bench.path().read_bytes()
    code, said = bench.run("--fresh", preexec_fn=no_override)
    assert code == 2, said
    assert "tiny.jsonl cannot be written: Permission denied" in said
    assert bench.path().read_bytes() == before


@pytest.mark.slow
def test_a_torn_last_line_is_measured_again_and_counted_once(bench) -> None:
    bench.suite(trained="none, rope")
    assert bench.run()[0] == 0
    whole = bench.path().read_bytes()
    bench.path().write_bytes(whole[:-100])
    code, _ = bench.run()
    assert code == 0
    assert bench.path().read_bytes().startswith(whole[: whole[:-100].rfind(b"\n") + 1])
    assert len({one.id for one in bench.members()}) == len(bench.members()) == 2


@pytest.mark.slow
def test_a_second_run_on_the_same_results_is_refused_and_harms_nothing(bench, wait_for) -> None:
    bench.suite("none, rope", "none", steps=1_000_000)
    first = bench.start()
    wait_for(lambda: bench.members())
    before = bench.path().read_bytes()
    code, said = bench.run()
    assert code == 2, said
    assert "another run writes to" in said
    assert bench.path().read_bytes() == before
    first.send_signal(signal.SIGTERM)
    assert first.wait(timeout=30) == 75


@pytest.mark.slow
def test_a_damaged_checkpoint_begins_its_training_anew_and_says_so(bench) -> None:
    bench.suite(trained="none")
    assert bench.run()[0] == 0
    (undisturbed,) = bench.members()
    folder = bench.path().parent / "checkpoints"
    folder.mkdir(exist_ok=True)
    (folder / f"{undisturbed.id}.safetensors").write_bytes(b"\x00" * 100)
    assert bench.run("--fresh")[0] == 0
    _, again = bench.members()
    assert again.reading.scores == undisturbed.reading.scores
    assert any("began anew, since its checkpoint cannot be used" in one for one in again.notes), again.notes
    assert "began anew, since its checkpoint cannot be used" in bench.report()
