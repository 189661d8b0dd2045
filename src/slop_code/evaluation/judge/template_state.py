"""Open files and leftovers of a collected template before the first test; loaded as `slop_code_template_state`."""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

OUTPUT, STREAM = "slop_code_output", "slop_code_stream"
MAX_SIZE = 64 << 20


class Descriptors:
    """Everything that is open in the template, and what a judge has in its place."""

    def __init__(self, fork_server: Any, own: Iterable[int]) -> None:
        """`own` are the descriptors of the fork server, which no judge has."""
        self.fork_server = fork_server
        self.outputs: list[int] = []
        self.nulls: list[int] = []
        self.captures: list[tuple[int, str]] = []
        self.streams: list[int] = []
        self.unknown: list[str] = []
        for number in {*map(int, os.listdir("/proc/self/fd"))} - {*own}:
            self.classify(number)
        self.numbers = [*self.outputs, *self.nulls, *self.streams, *(number for number, _ in self.captures)]

    def classify(self, number: int) -> None:
        try:
            path = link(number)
        except FileNotFoundError:  # that of the list itself
            return
        if path.startswith(f"/memfd:{OUTPUT}"):
            self.outputs.append(number)
        elif path.startswith(f"/memfd:{STREAM}"):
            self.streams.append(number)
        elif path == os.devnull:
            self.nulls.append(number)
        elif path.endswith(" (deleted)") and not path.startswith("/memfd:") and is_empty_file(number):
            self.captures.append((number, os.path.dirname(path)))
        else:
            self.unknown.append(path)

    def replace(self, log: int, stream: str) -> None:
        """The open files of the template itself are never written to: all judges would share them."""
        text = content(self.outputs[0])
        events = content(self.streams[0])
        self.fork_server.replace_descriptors(log, self.outputs, self.nulls)
        for number, folder in self.captures:
            with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
                os.dup2(file.fileno(), number, inheritable=os.get_inheritable(number))
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        opened = os.open(stream, flags, 0o600)
        os.dup2(opened, self.streams[0], inheritable=False)
        os.close(opened)
        write_all(self.outputs[0], text)
        write_all(self.streams[0], events)


def link(number: int) -> str:
    return os.readlink(f"/proc/self/fd/{number}")


def content(number: int) -> bytes:
    return os.pread(number, min(os.fstat(number).st_size, MAX_SIZE), 0)


def write_all(number: int, data: bytes) -> None:
    while data:
        data = data[os.write(number, data) :]


def is_empty_file(number: int) -> bool:
    """A file of pytest's capture, from which it has taken everything."""
    return os.fstat(number).st_size == 0 and os.lseek(number, 0, os.SEEK_CUR) == 0


def ignored_signals() -> set[int]:
    return {number for number in signal.valid_signals() if signal.getsignal(number) == signal.SIG_IGN}


def leftovers(cwd: str, ignored: set[int]) -> list[str]:
    """State that a fork would not copy, or would share. `cwd`, `ignored`: as they were before the tests."""
    reasons = []
    if ignored_signals() != ignored:  # the submission's box would inherit that
        reasons.append("a signal was ignored before the first test")
    if signal.getsignal(signal.SIGCHLD) != signal.SIG_DFL:
        reasons.append("SIGCHLD was handled before the first test, and the template waits for its own processes")
    if len(os.listdir("/proc/self/task")) > 1:
        reasons.append("a thread was left running before the first test")
    try:
        os.waitpid(-1, os.WNOHANG)
        reasons.append("a process was left before the first test")
    except ChildProcessError:
        pass
    if any(any(signal.getitimer(t)) for t in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)):
        reasons.append("a timer was left running before the first test")
    if os.getcwd() != cwd:
        reasons.append("the working directory was changed before the first test")
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        if any(line.split()[1][1::2] == "ws" for line in maps):
            reasons.append("memory that processes share was mapped before the first test")
    return reasons


def captured_functions(probes: Any) -> list[str]:
    """Modules that have imported a function while a probe stood for it get the function itself."""
    reasons = []
    for name, original in probes.originals.items():
        probe = probes.replaced[name]
        for owner in gc.get_referrers(probe):
            if isinstance(owner, FrameType) or owner is probes.replaced:
                continue
            if not is_module(owner):  # a class would not notice the change
                reasons.append(f"os.{name} was kept before the first test")
                continue
            for key in list(owner):  # no comprehension, which would keep the probe in a cell
                if owner[key] is probe:
                    owner[key] = original
    return reasons


def is_module(owner: Any) -> bool:
    """Whether it is the namespace of a module."""
    name = owner.get("__name__") if isinstance(owner, dict) else None
    return isinstance(name, str) and getattr(sys.modules.get(name), "__dict__", None) is owner
