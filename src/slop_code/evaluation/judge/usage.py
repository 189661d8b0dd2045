"""pytest plugin that measures what each test used; the judge's plugin loads it as `slop_code_usage`.

It sets `slop_code_usage` on the last report of a test: members of the test's line in the stream.

- `usage`: what the submission's processes, the judge and the rest of the machine used meanwhile.
- `limits`: the limits of the submission that struck.
- `timeout`: the time limit that ended the test, if one did.
"""

from __future__ import annotations

import os
import re
import resource
import shlex
import struct
import sys
import time
from socket import AF_UNIX, SOCK_SEQPACKET, socket
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

USAGE = struct.pack("=I", 0x55534547)
END = struct.pack("=I", 0x454E4421)
"""Requests to the spawner: what was used since the last one, and the end of all processes of the submission."""

HEAD = struct.Struct("=7Q")
STRUCK = struct.Struct("=II248s")
KINDS = {1: "memory", 2: "processes", 3: "disk", 4: "output", 5: "out_of_memory"}
UNKNOWN_WAIT = (1 << 64) - 1
ANSWER_SIZE = 1 << 16
ANSWER_S = 5.0
MAX_CHAIN = 20
MAX_S = 1e11
MAX_COUNT = (1 << 63) - 1
"""What the records of a result accept."""

REPORTED = "_slop_code_reported"
"""Set on errors: pytest raises that of a fixture again for every test that needs the fixture."""

TIMEOUT_TEXT = re.compile(r"Timeout (?:\(>|>)([0-9]+(?:\.[0-9]+)?)s\)?")
"""The beginning of a failure of pytest-timeout."""

TICKS = os.sysconf("SC_CLK_TCK")
PROCESSORS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
monotonic = time.monotonic
"""Kept, because a test may replace the clock."""


class UsageMeter:
    """Differences since the last test, from the spawner in the subject's box and from the kernel."""

    def __init__(self, gate: str | None, limits: Mapping[str, int], cpus: float | None = None) -> None:
        self.gate = gate
        self.limits = limits
        self.processors = min(cpus or PROCESSORS, PROCESSORS)
        self.timeout: dict[str, Any] | None = None
        self.last = Reading()
        self.answered = True

    def start(self) -> None:
        self.answered = ask_spawner(self.gate) is not None
        self.last = Reading()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        self.start()

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.excinfo is not None and self.timeout is None:
            self.timeout = timeout_of(call.excinfo.value, monotonic() - self.last.time)
        if report.when == "teardown":
            report.slop_code_usage = self.take()  # type: ignore[attr-defined]
        return report

    def take(self) -> dict[str, Any]:
        """The members of the line, and a new start for the next test."""
        answer, before, now, timeout = ask_spawner(self.gate), self.last, Reading(), self.timeout
        measured, self.answered = answer is not None and self.answered, answer is not None
        self.last, self.timeout = now, None
        judge_cpu = now.own_cpu + now.children_cpu - before.own_cpu - before.children_cpu
        sizes = ("memory_bytes", "processes", "written_bytes", "disk_bytes")
        usage: dict[str, Any] = dict.fromkeys(("cpu_s", "wait_s", *sizes))
        struck: list[dict[str, Any]] = []
        if answer is not None:
            cpu, wait, *counts, count = HEAD.unpack_from(answer)
            usage |= {name: min(number, MAX_COUNT) for name, number in zip(sizes, counts, strict=True)}
            if measured:  # otherwise these are times of the test before, too
                usage |= {"cpu_s": cpu / 1e9, "wait_s": None if wait == UNKNOWN_WAIT else wait / 1e9}
            struck = [self.struck(answer, HEAD.size + index * STRUCK.size) for index in range(count)]
        elif self.gate is None:  # without boxes, the submission's processes are children of the judge
            usage["cpu_s"] = _seconds(now.children_cpu - before.children_cpu)
            judge_cpu = now.own_cpu - before.own_cpu
        others = now.busy - before.busy - judge_cpu - (usage["cpu_s"] or 0.0)
        times = {"judge_cpu_s": judge_cpu, "judge_wait_s": now.own_wait - before.own_wait}
        times |= {"others_cpu_s": others, "stolen_s": now.stolen - before.stolen}
        usage |= {name: _seconds(value) for name, value in times.items()} | {"processors": self.processors}
        return {"usage": usage, "limits": struck, "timeout": timeout}

    def struck(self, answer: bytes, offset: int) -> dict[str, Any]:
        number, size, text = STRUCK.unpack_from(answer, offset)
        kind = KINDS[number]
        words = [os.fsdecode(word) for word in text[:size].split(b"\0")]
        call = shlex.join(words[:-1] if not words[-1] else words) if size else None
        return {"kind": kind, "limit": self.limits.get(kind), "call": call}


class Reading:
    """Totals of this moment, in seconds. What cannot be read is 0."""

    def __init__(self) -> None:
        own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        self.own_cpu = own.ru_utime + own.ru_stime
        self.children_cpu = children.ru_utime + children.ru_stime
        self.own_wait = (_numbers("/proc/self/schedstat") or [0, 0])[1] / 1e9
        # user, nice, system, idle, iowait, irq, softirq, steal; what follows is part of user.
        times = (_numbers("/proc/stat") or [0] * 8)[:8]
        self.stolen = times[7] / TICKS
        self.busy = (sum(times[:3]) + sum(times[5:7])) / TICKS
        self.time = monotonic()


def _numbers(path: str) -> list[int] | None:
    """The numbers in the first line of the file."""
    try:
        with open(path, encoding="ascii") as file:
            return [int(word) for word in file.readline().split() if word.isdecimal()]
    except (OSError, ValueError):
        return None


def ask_spawner(gate: str | None) -> bytes | None:
    """The spawner's answer, or None if there is no spawner or it does not answer."""
    answer = request(gate, USAGE, ANSWER_S)
    return answer if len(answer) >= HEAD.size else None


def request(gate: str | None, packet: bytes, timeout: float) -> bytes:
    """The spawner's answer; nothing if there is none."""
    if gate is None:
        return b""
    try:
        with socket(AF_UNIX, SOCK_SEQPACKET) as connection:
            connection.settimeout(timeout)
            connection.connect(gate)
            connection.send(packet)
            return connection.recv(ANSWER_SIZE)
    except OSError:
        return b""


def timeout_of(error: BaseException, elapsed: float) -> dict[str, Any] | None:
    """The time limit behind this error or one of its causes; None if there is none, or if it was reported before.

    `kind` is `test` for pytest-timeout, and `call` for a limit in the test's own code. `elapsed`: since the test began.
    """
    parts = list(_chain(error))
    if any(REPORTED in part.__dict__ for part in parts):
        return None
    for part in parts:
        match = TIMEOUT_TEXT.match(str(part.msg)) if isinstance(part, pytest.fail.Exception) else None
        if match or any("timeout" in kind.__name__.lower() for kind in type(part).__mro__):
            part.__dict__[REPORTED] = True
            limit = _seconds(float(match[1])) if match else _limit(getattr(part, "timeout", None), elapsed)
            return {"kind": "test" if match else "call", "limit_s": limit}
    return None


def _limit(limit: object, elapsed: float) -> float:
    """The error's own limit if it can be that of a whole call, else the elapsed time.

    A test that waits for the rest of its time has a limit near zero, or below. Other libraries count in other units.
    """
    is_whole = isinstance(limit, int | float) and elapsed / 2 <= limit <= elapsed
    return _seconds(float(limit) if is_whole else elapsed)  # type: ignore[arg-type]


def _seconds(value: float) -> float:
    return max(0.0, min(value, MAX_S))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, its causes, and an error that it wraps, as that of urllib does."""
    waiting: list[Any] = [error]
    for _ in range(MAX_CHAIN):
        if not waiting:
            return
        part = waiting.pop(0)
        yield part
        below = (part.__cause__, part.__context__, getattr(part, "reason", None))
        waiting += [inner for inner in below if isinstance(inner, BaseException)]


def pytest_configure(config: pytest.Config) -> None:
    settings = sys.modules["slop_code_judge"]._settings
    meter = UsageMeter(settings.get("gate"), settings.get("limits", {}), settings.get("cpus"))
    config.pluginmanager.register(meter, "slop_code_usage_meter")
