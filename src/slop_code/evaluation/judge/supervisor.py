"""Supervisor of one evaluation by a forked judge; the fork server loads it as `slop_code_supervisor`."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import signal
import socket
import struct
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

privileges: Any = None
"""The module `slop_code_judge_privileges`; the template sets it."""

NAMESPACES = ("net", "ipc", "uts", "pid", "cgroup", "mnt", "user")
"""In the order in which they are sent and entered: the user namespace last, since entering it ends all rights here."""

KEYS = {"boxes", "argv", "cwd", "environment", "settings", "filter", "file_size"}
NUMBER = struct.Struct("=i")
HOLD = "{hold}"
MAX_REQUEST = 64 << 20
GROUP_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
FAILED = 125
"""Exit status of a judge that could not be set up; no exit status of pytest."""


class AbandonedError(Exception):
    """The evaluator has closed the lifeline."""


def supervise(template: int, descriptors: Sequence[int], kept: frozenset[int]) -> tuple[dict[str, Any], int]:
    """One evaluation, in the supervisor. Returns only in the judge."""
    memory, log, lifeline, status = descriptors
    supervisor = Supervisor(template, log, lifeline)
    try:
        privileges.die_with_parent(template)
        os.setsid()  # not in the judge, which would be the leader of its session then; a cold judge is not
        request = _read_request(memory)
        result = supervisor.run(request)
        if result is None:
            _become_judge(request, log, kept)
            return request, log
        os.write(status, NUMBER.pack(result))
        os._exit(0)
    except AbandonedError:
        pass
    except BaseException:  # noqa: BLE001  (no error may return to the template's code)
        report_failure(log)
    try:
        supervisor.kill_all()
    finally:
        os._exit(FAILED)


def _read_request(memory: int) -> dict[str, Any]:
    size = min(os.fstat(memory).st_size, MAX_REQUEST)
    request: dict[str, Any] = json.loads(os.pread(memory, size, 0))
    if missing := KEYS - request.keys():
        raise ValueError(f"the request has no {', '.join(sorted(missing))}")
    if request["boxes"] is not None and not (request["filter"] and request["file_size"]):
        raise ValueError("a judge in a box needs a filter of system calls and a limit of file sizes")
    return request


class Supervisor:
    """The processes of one evaluation."""

    def __init__(self, template: int, log: int, lifeline: int) -> None:
        self.template, self.log, self.lifeline = template, log, lifeline
        self.children: dict[int, int] = {}
        """A descriptor for each child that was not waited for, by its process id."""

    def run(self, request: dict[str, Any]) -> int | None:
        """The exit status of the evaluation; None in the judge."""
        if request["boxes"] is None:
            privileges.adopt_orphans()
            parent = os.getpid()
            judge = self.fork_judge()
            if judge == 0:
                privileges.die_with_parent(parent)
                return None
            self.wait_for(self.children[judge])
            status = self.exit_status(judge)
            kill_orphans()
            return status
        hold, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            boxes = self.start_boxes(request["boxes"], theirs)
        except OSError:
            report_failure(self.log)
            return FAILED
        ready = self.wait_for(hold.fileno(), self.children[boxes])
        namespaces = receive(hold, NUMBER.size, len(NAMESPACES))[1] if ready == hold.fileno() else []
        if len(namespaces) == len(NAMESPACES):  # otherwise the boxes have failed, and their status says how
            privileges.enter_namespaces(namespaces, NAMESPACES)
            privileges.die_with_parent(self.template)  # which entering a user namespace has cleared
            judge = self.fork_judge()
            if judge == 0:
                return None
            if self.wait_for(self.children[judge], self.children[boxes]) == self.children[judge]:
                with contextlib.suppress(OSError):  # the boxes have just ended
                    hold.send(NUMBER.pack(self.exit_status(judge)))
        hold.close()
        self.wait_for(self.children[boxes])
        return self.exit_status(boxes)

    def fork(self) -> int:
        pid = os.fork()
        if pid == 0:
            self.children.clear()
        else:
            self.children[pid] = os.pidfd_open(pid)
        return pid

    def fork_judge(self) -> int:
        """A signal of a test to its own process group reaches this process, too, and must not end it."""
        before = {number: signal.getsignal(number) for number in GROUP_SIGNALS}
        for number in GROUP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        judge = self.fork()
        if judge == 0:
            for number, handler in before.items():
                signal.signal(number, handler)
        return judge

    def start_boxes(self, argv: Sequence[str], hold: socket.socket) -> int:
        """They inherit `hold`, and the log as their output; starting them copies no memory of this process."""
        words = [str(hold.fileno()) if word == HOLD else word for word in argv]
        hold.set_inheritable(True)
        closed = inherited_descriptors() - {0, 1, 2, hold.fileno()}
        actions = [
            *((os.POSIX_SPAWN_DUP2, self.log, number) for number in (1, 2)),
            *((os.POSIX_SPAWN_CLOSE, number) for number in closed),
        ]
        defaults = (signal.SIGPIPE, signal.SIGXFSZ)  # ignored by Python; the boxes' programs expect them
        pid = os.posix_spawn(words[0], words, {}, file_actions=actions, setsid=True, setsigdef=defaults)
        self.children[pid] = os.pidfd_open(pid)
        hold.close()
        return pid

    def wait_for(self, *descriptors: int) -> int:
        """The first that is readable, or whose process has ended."""
        poll = select.poll()
        for descriptor in (self.lifeline, *descriptors):
            poll.register(descriptor, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll()}
        if self.lifeline in ready:
            raise AbandonedError
        return next(descriptor for descriptor in descriptors if descriptor in ready)

    def exit_status(self, pid: int) -> int:
        """128 and more for a signal, as uvx and bwrap report it."""
        os.close(self.children.pop(pid))
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return code if code >= 0 else 128 - code

    def kill_all(self) -> None:
        for pid in self.children:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        for pid in list(self.children):
            self.exit_status(pid)
        kill_orphans()


def receive(connection: socket.socket, size: int, count: int) -> tuple[bytes, list[int]]:
    """A packet and its descriptors, which no program inherits; none of a packet with more than `count`."""
    try:
        space = socket.CMSG_SPACE(count * NUMBER.size)
        data, messages, flags, _ = connection.recvmsg(size, space, socket.MSG_CMSG_CLOEXEC)
    except OSError:
        return b"", []
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS)
    packed = b"".join(content for *kind, content in messages if tuple(kind) == rights)
    descriptors = [value for (value,) in NUMBER.iter_unpack(packed[: len(packed) // NUMBER.size * NUMBER.size])]
    if flags & (socket.MSG_CTRUNC | socket.MSG_TRUNC):
        for descriptor in descriptors:
            os.close(descriptor)
        return data, []
    return data, descriptors


def kill_orphans() -> None:
    """Processes that a judge without boxes left; the supervisor has adopted them."""
    path = f"/proc/self/task/{os.getpid()}/children"
    while True:
        try:
            with open(path, encoding="ascii") as file:
                orphans = [int(word) for word in file.read().split()]
        except OSError:  # in a box: the end of its process namespace has killed them
            return
        killed = 0
        for orphan in orphans:
            with contextlib.suppress(OSError):  # one of another user cannot be killed
                os.kill(orphan, signal.SIGKILL)
                os.waitpid(orphan, 0)
                killed += 1
        if killed == 0:
            return


def _become_judge(request: dict[str, Any], log: int, kept: frozenset[int]) -> None:
    """Every step before the first line of a test runs: the process is then what a cold judge is."""
    try:
        close_descriptors({0, 1, 2, log, *kept})
        if request["file_size"]:
            privileges.lower_file_size(request["file_size"])
        os.chdir(request["cwd"])
        if request["filter"]:
            privileges.drop_privileges(base64.b64decode(request["filter"], validate=True))
            privileges.die_with_parent()  # which dropping privileges has cleared
    except BaseException:  # noqa: BLE001  (no test may run in a process that was not set up)
        report_failure(log)
        os._exit(FAILED)


def close_descriptors(kept: set[int]) -> None:
    """Some versions of Python close everything if a range is empty."""
    first = 0
    for number in [*sorted(kept), os.sysconf("SC_OPEN_MAX")]:
        if first < number:
            os.closerange(first, number)
        first = number + 1


def inherited_descriptors() -> set[int]:
    """Those of this process that a program would inherit."""
    inherited = set()
    for number in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):  # that of the list itself is closed
            inherited |= {number} if os.get_inheritable(number) else set()
    return inherited


def report_failure(log: int) -> None:
    with contextlib.suppress(OSError):
        os.write(log, f"the fork server failed\n{traceback.format_exc()}".encode("utf-8", "replace"))
