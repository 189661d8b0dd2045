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
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            state, above = (path / "stat").read_text().rpartition(")")[2].split()[:2]
            if int(above) == parent and b"getppid" in (path / "cmdline").read_bytes():
                found[int(path.name)] = state
        except (OSError, ValueError):  # it has just ended
            continue
    return found


@pytest.mark.e2e
def test_so_many_run_and_end_with_the_block():
    with cpu_load(3):
        assert list(spinners(os.getpid()).values()) == ["R"] * 3
    assert spinners(os.getpid()) == {}


@pytest.mark.e2e
def test_they_end_with_an_error_too():
    with pytest.raises(ZeroDivisionError), cpu_load(2):
        assert len(spinners(os.getpid())) == 1 / 0
    assert spinners(os.getpid()) == {}


def test_none_is_fine():
    with cpu_load(0):
        assert spinners(os.getpid()) == {}


@pytest.mark.e2e
def test_they_end_by_themselves_where_their_parent_was_killed():
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
