"""Processor time of this process and of all that it started, from `/proc` and `getrusage`; neither needs root.

The kernel adds the time of an ended process to that of the process that waited for it, and so on up to a process that
still lives. So the time of everything that this process ever started is in its living descendants and in itself, but
for processes that nobody waits for: a control group counted 3 to 7 % more.
"""

from __future__ import annotations

import os
import resource
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

SETTLE_S = 3.0
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class ProcessState:
    """One line of `/proc/PID/stat`."""

    pid: int
    parent: int
    is_zombie: bool
    own_s: float
    ended_s: float
    """Of its children that have ended, and of theirs."""

    memory: int
    """Resident bytes."""


@dataclass(frozen=True, slots=True)
class ProcessorTime:
    evaluator: float
    templates: float
    """Of the processes that stay between evaluations."""

    total: float

    def since(self, before: ProcessorTime) -> ProcessorTime:
        return ProcessorTime(
            self.evaluator - before.evaluator, self.templates - before.templates, self.total - before.total
        )


def processor_time() -> ProcessorTime:
    """While no evaluation runs: what still lives then are templates, and the boxes around them."""
    evaluator = _seconds(resource.RUSAGE_SELF)
    processes = settled_descendants()
    below = sum(process.own_s + process.ended_s for process in processes)
    templates = sum(process.own_s for process in processes if not process.is_zombie)
    return ProcessorTime(evaluator, templates, evaluator + _seconds(resource.RUSAGE_CHILDREN) + below)


def settled_descendants() -> list[ProcessState]:
    """Those that ended get some time to be waited for, which templates do once a second."""
    deadline = time.monotonic() + SETTLE_S
    while True:
        processes = descendants()
        if time.monotonic() > deadline or not any(process.is_zombie for process in processes):
            return processes
        time.sleep(0.05)


def descendants() -> list[ProcessState]:
    children: defaultdict[int, list[ProcessState]] = defaultdict(list)
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (state := _state(folder)) is not None:
            children[state.parent].append(state)
    below, waiting = [], [os.getpid()]
    while waiting:
        more = children[waiting.pop()]
        below += more
        waiting += [state.pid for state in more]
    return below


def _state(folder: Path) -> ProcessState | None:
    """None: the process is gone. Its name, in parentheses, may have any characters."""
    try:
        fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    own, ended = int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
    memory = int(fields[21]) * PAGE
    return ProcessState(int(folder.name), int(fields[1]), fields[0] == "Z", own / TICKS, ended / TICKS, memory)


def _seconds(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime
