"""A machine that is kept busy, and is left alone afterwards, whatever happens."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from slop_code.execution.process import cpu_load

HOLDS = """
import os, sys
from slop_code.execution.process import cpu_load

with cpu_load(2):
    print("busy", flush=True)
    sys.stdin.read()
"""


def spinners(parent: int) -> dict[int, str]:
    """The children that only use up time, with their state."""
    states = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            state, above = (path / "stat").read_text().rpartition(")")[2].split()[:2]
            if int(above) == parent and b"getppid" in (path / "cmdline").read_bytes():
                states[int(path.name)] = state
        except (OSError, ValueError):  # it has just ended
            continue
    return states


@pytest.mark.e2e
def test_the_processes_run_during_the_block():
    with cpu_load(3):
        assert list(spinners(os.getpid()).values()) == ["R"] * 3
    assert spinners(os.getpid()) == {}


@pytest.mark.e2e
def test_the_processes_end_when_the_block_raises():
    with pytest.raises(ZeroDivisionError), cpu_load(2):
        assert len(spinners(os.getpid())) == 1 / 0
    assert spinners(os.getpid()) == {}


def test_zero_processes_are_allowed():
    with cpu_load(0):
        assert spinners(os.getpid()) == {}


@pytest.mark.e2e
def test_the_processes_end_when_their_parent_is_killed():
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLDS], stdin=pipe, stdout=pipe) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"busy\n"
        ends = {os.pidfd_open(pid) for pid in spinners(holder.pid)}
        assert len(ends) == 2
        holder.send_signal(signal.SIGKILL)
    poll = select.poll()
    for end in ends:
        poll.register(end, select.POLLIN)
    while ends:
        ended = poll.poll(60_000)
        assert ended, "they still run"
        for end, _ in ended:
            poll.unregister(end)
            os.close(end)
            ends.discard(end)
