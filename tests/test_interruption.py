"""Signals that ask a command to end."""

import os
import signal
import subprocess
import sys

import pytest

from grape_bench.interruption import deaf, noted, raised


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


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_what_is_started_deaf_stays_so_and_its_parent_hears(name: str) -> None:
    number = signal.Signals[name]
    before = signal.signal(number, signal.default_int_handler)
    try:
        with noted() as names, deaf():
            child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
            os.kill(os.getpid(), number)
        assert names == [name]
        child.send_signal(number)
        child.communicate(b"\n", timeout=30)
        assert child.returncode == 0
    finally:
        signal.signal(number, before)
