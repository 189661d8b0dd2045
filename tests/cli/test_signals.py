"""Signals during an evaluation: it is cancelled where it waits, and nothing is raised anywhere else."""

import io
import os
import signal

import pytest

from slop_code.cli.main import run
from slop_code.cli.signals import cancelled_by_signals, interrupts
from slop_code.execution.cancellation import wait_for
from slop_code.runs.jobs.run_control import RunControl

ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_cancels_the_evaluation(number):
    before = [signal.getsignal(ending) for ending in ENDING]
    steps = []

    def evaluate():
        with cancelled_by_signals():
            os.kill(os.getpid(), number)
            steps.append("cleaned up")
            wait_for(None, 20)
            steps.append("went on")

    with pytest.raises(KeyboardInterrupt):
        evaluate()
    assert steps == ["cleaned up"]
    assert [signal.getsignal(ending) for ending in ENDING] == before


def test_after_the_second_signal_ctrl_c_ends_at_once():
    with cancelled_by_signals():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_a_hang_up_that_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with cancelled_by_signals():
            os.kill(os.getpid(), signal.SIGHUP)
            assert not wait_for(None, 0)
    finally:
        signal.signal(signal.SIGHUP, before)


class InterruptedFile(io.RawIOBase):
    """Ctrl-C during its first write."""

    def __init__(self):
        super().__init__()
        self.written = b""

    def writable(self):
        return True

    def write(self, block):
        first, self.written = not self.written, self.written + bytes(block)
        if first:
            signal.raise_signal(signal.SIGINT)
        return len(block)


def test_a_message_about_a_ctrl_c_during_a_write_is_not_lost():
    raw = InterruptedFile()
    stream, control = io.TextIOWrapper(io.BufferedWriter(raw)), RunControl()
    with interrupts(control, lambda: print("stopping", file=stream, flush=True)):
        print("[1/3] PASSED", file=stream, flush=True)
    assert raw.written.splitlines() == [b"[1/3] PASSED", b"stopping"]
    assert control.finishing


def test_a_command_waits_for_processes_where_its_caller_ignores_their_ends(capsys):
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        run(["--version"])
        assert signal.getsignal(signal.SIGCHLD) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGCHLD, before)
