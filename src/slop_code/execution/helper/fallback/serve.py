"""serve LISTENER MEMORY PROCESSES FILESIZE NPROC: process 1 of the subject's box, as in `serve.c`."""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import struct
import time
from typing import NamedTuple

from slop_code.execution.helper.fallback.kernel import PR_SET_DUMPABLE, execute, restrict_calls, try_libc
from slop_code.execution.helper.fallback.shared import (
    ENDED_ITSELF,
    FAILED,
    LAST_SIGNAL,
    MAGIC,
    NOT_EXECUTABLE,
    NOT_FOUND,
    REPLY,
    REQUEST,
    REQUEST_FDS,
    SIGNAL,
    TOO_MANY_PROCESSES,
    TOO_MUCH_MEMORY,
    bound,
    complain,
    connect_to,
    default_signals,
    die,
    hear_signals,
    receive_descriptors,
    send_signal,
    signals_heard,
    wait_for_all,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

MOST_CALLS = 1024
WATCH_S = 0.05
PATIENCE_S = 5


class Limits(NamedTuple):
    memory: int
    processes: int
    file_size: int
    of_user: int


calls: dict[int, tuple[socket.socket, int]] = {}
"""The connection and the process of each call, by the connection's descriptor."""

shared = False
"""Whether the submission, too, can reach the listener."""


def go_first_when_memory_ends() -> None:
    """Raising one's own score needs no privilege: the box's processes go before its supervisor."""
    try_libc("prctl", PR_SET_DUMPABLE, 1, 0, 0, 0)  # else the file is not its own
    try:
        with open("/proc/self/oom_score_adj", "wb", buffering=0) as file:
            file.write(b"1000")
    except OSError:
        pass


def close_all_but_streams() -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            try:
                os.close(int(name))
            except OSError:
                pass  # that of the listing


def become(request: tuple[int, int, int], descriptors: Sequence[int], limits: Limits) -> NoReturn:
    argc, envc, size = request
    for number in range(3):
        os.dup2(descriptors[number], number)
    if os.fstat(descriptors[3]).st_size < size:
        die("bad request")
    text = os.pread(descriptors[3], size, 0)
    words = text.split(b"\0")
    if len(text) != size or words.pop() or len(words) < 1 + argc + envc:
        die("bad request")
    # Before this process can be looked into by others of the box, it lets go of serve's descriptors.
    close_all_but_streams()
    os.setsid()
    default_signals()
    os.umask(0o022)
    restrict_calls()
    go_first_when_memory_ends()
    bound("RLIMIT_CORE", 0)
    bound("RLIMIT_DATA", limits.memory)
    if limits.of_user > 0:
        bound("RLIMIT_NPROC", limits.of_user)
    bound("RLIMIT_FSIZE", limits.file_size)
    try:
        os.chdir(words[0])
    except OSError as error:
        complain(f"the subject has no folder {os.fsdecode(words[0])}: {error.strerror}")
        os._exit(NOT_EXECUTABLE)
    failure = execute(words[1 : 1 + argc], words[1 + argc : 1 + argc + envc])
    complain(f"cannot run {os.fsdecode(words[1])}: {failure.strerror}")
    os._exit(NOT_FOUND if failure.errno == errno.ENOENT else NOT_EXECUTABLE)


def receive_request(connection: socket.socket) -> tuple[tuple[int, int, int], list[int]] | None:
    got = receive_descriptors(connection, REQUEST.size + 1, REQUEST_FDS)
    if got is None:
        return None
    packet, descriptors = got
    if len(packet) == REQUEST.size:
        magic, argc, envc, size = REQUEST.unpack(packet)
        if magic == MAGIC and argc > 0 and size > 0:
            return (argc, envc, size), descriptors
    for descriptor in descriptors:
        os.close(descriptor)
    return None


def finish(descriptor: int, status: int, reason: int) -> None:
    connection, _ = calls.pop(descriptor)
    try:
        connection.send(REPLY.pack(status, reason))
    except OSError:
        pass
    connection.close()


def is_of_this_box(connection: socket.socket) -> bool:
    """Whoever has a number here is the submission, which has nothing to ask for and could make this wait."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return bool(struct.unpack("iII", credentials)[0])


def accept_call(listener: socket.socket, limits: Limits) -> None:
    try:
        connection = listener.accept()[0]
    except OSError:
        return
    if shared and is_of_this_box(connection):
        connection.close()
        return
    connection.settimeout(PATIENCE_S)
    call = receive_request(connection) if len(calls) < MOST_CALLS else None
    if call is None:
        connection.close()
        return
    connection.setblocking(False)
    try:
        pid = os.fork()
    except OSError:
        pid = -1
    if pid == 0:
        try:
            become(*call, limits)
        finally:
            os._exit(FAILED)
    for descriptor in call[1]:
        os.close(descriptor)
    calls[connection.fileno()] = connection, pid
    if pid < 0:
        finish(connection.fileno(), FAILED << 8, TOO_MANY_PROCESSES)


def hear(descriptor: int) -> None:
    """A signal to pass on, or the launcher's end, which is the end of the whole group."""
    connection, pid = calls[descriptor]
    try:
        packet = connection.recv(SIGNAL.size)
    except BlockingIOError:
        return
    except OSError:
        packet = b""
    number = SIGNAL.unpack(packet)[0] if len(packet) == SIGNAL.size else 0
    if 0 < number <= LAST_SIGNAL:
        send_signal(pid, number)
        return
    send_signal(-pid, signal.SIGKILL)
    send_signal(pid, signal.SIGKILL)
    connection.close()
    del calls[descriptor]


def bury() -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        for descriptor, (_, mine) in list(calls.items()):
            if mine == pid:
                finish(descriptor, status, ENDED_ITSELF)


def memory_files_of(pid: str) -> int:
    """Memory files that a process holds open, written to and mapped by nobody."""
    total = 0
    for name in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{name}"
        try:
            if os.readlink(path).startswith("/memfd:"):
                total += os.stat(path).st_blocks * 512
        except OSError:
            pass
    return total


def shared_segments() -> int:
    """Segments of System V shared memory in this box, attached or not."""
    try:
        with open("/proc/sysvipc/shm", "rb") as file:
            return sum(int(line.split()[14]) for line in file.read().splitlines()[1:])
    except OSError:
        return 0


def taken_by(pid: str) -> tuple[int, int]:
    """Memory in bytes that is the process's alone or shared memory, and its threads: each counts as a process."""
    with open(f"/proc/{pid}/status", "rb", buffering=0) as file:
        lines = [line.split() for line in file.read(1 << 16).splitlines()]
    memory = sum(int(line[1]) << 10 for line in lines if line[:1] in ([b"RssAnon:"], [b"RssShmem:"]))
    return memory, sum(int(line[1]) for line in lines if line[:1] == [b"Threads:"])


def over_limit(limits: Limits) -> int:
    memory, processes = shared_segments(), 0
    for name in os.listdir("/proc"):
        if not "1" <= name[0] <= "9" or name == "1":
            continue
        try:
            own, threads = taken_by(name)
            memory, processes = memory + own, processes + threads
            memory += memory_files_of(name)
        except OSError:
            pass
    if processes > limits.processes:
        return TOO_MANY_PROCESSES
    return TOO_MUCH_MEMORY if memory > limits.memory else ENDED_ITSELF


def enforce(limits: Limits) -> None:
    reason = over_limit(limits)
    if reason == ENDED_ITSELF:
        return
    send_signal(-1, signal.SIGKILL)
    wait_for_all()  # else those who are still dying count against the next call
    for descriptor in list(calls):
        finish(descriptor, signal.SIGKILL, reason)


def listener_from(word: str) -> tuple[socket.socket, int]:
    """The listener, and the connection that ends when the judge's side does, -1 where there is none."""
    if not word.startswith("/"):
        return socket.socket(fileno=int(word)), -1
    if os.getpid() != 1:
        die("not process 1: the submission could end this")
    global shared
    shared = True
    try:
        judge = connect_to(word)
    except OSError as error:
        die("no answer from the judge's box", error)
    got = receive_descriptors(judge, 1, 1)
    if got is None or len(got[0]) != 1:
        die("the judge's box did not admit this one")
    return socket.socket(fileno=got[1][0]), judge.detach()


def serve_main(argv: Sequence[str]) -> int:
    if len(argv) != 5:
        die("serve: five arguments expected")
    import ctypes  # noqa: F401  # once here, and not by the process of each call
    import resource  # noqa: F401

    limits = Limits._make(map(int, argv[1:]))
    listener, judge = listener_from(argv[0])
    try_libc("prctl", PR_SET_DUMPABLE, 0, 0, 0, 0)
    os.set_inheritable(listener.fileno(), False)
    signals = hear_signals([signal.SIGCHLD])
    last = 0.0
    while True:
        watched = select.poll()
        for descriptor in [listener.fileno(), signals, *calls, *([judge] if judge >= 0 else [])]:
            watched.register(descriptor, select.POLLIN)
        ready = {descriptor for descriptor, _ in watched.poll(WATCH_S * 1000)}
        if judge in ready:
            return 0
        for descriptor in ready & set(calls):
            hear(descriptor)
        if signals in ready:
            signals_heard(signals)
            bury()
        if listener.fileno() in ready:
            accept_call(listener, limits)
        # By the clock and not by idleness: a fork bomb keeps the loop busy.
        if time.monotonic() - last > WATCH_S:
            enforce(limits)
            last = time.monotonic()
