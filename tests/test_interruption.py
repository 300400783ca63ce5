"""Signals that ask a command to end."""

import os
import signal

import pytest

from grape_bench.interruption import noted, raised


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_command_is_interrupted_as_by_ctrl_c(name: str) -> None:
    before = signal.getsignal(signal.Signals[name])
    with pytest.raises(KeyboardInterrupt, match=name), raised():
        os.kill(os.getpid(), signal.Signals[name])
    assert signal.getsignal(signal.Signals[name]) == before


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_first_signal_is_noted_and_a_second_one_interrupts(name: str) -> None:
    before = signal.signal(signal.Signals[name], signal.default_int_handler)
    try:
        with noted() as names:
            os.kill(os.getpid(), signal.Signals[name])
            assert names == [name]
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.Signals[name])
    finally:
        signal.signal(signal.Signals[name], before)


def test_what_is_ignored_below_nohup_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with noted() as names, raised():
            os.kill(os.getpid(), signal.SIGHUP)
        assert names == []
    finally:
        signal.signal(signal.SIGHUP, before)
