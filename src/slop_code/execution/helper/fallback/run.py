"""run COMMAND…: the launcher. To the tests it is the submission's process, as in `run.c`."""

from __future__ import annotations

import os
import select
import stat

from slop_code.execution.helper.fallback.shared import (
    CONF_PATH,
    MAGIC,
    REPLY,
    REQUEST,
    SIGNAL,
    SOCKET_PATH,
    TOO_MANY_PROCESSES,
    TOO_MUCH_MEMORY,
    complain,
    connect_to,
    default_signals,
    die,
    environment,
    hear_signals,
    send_descriptors,
    signal,
    signals_heard,
    status_to_exit,
)
from slop_code.execution.helper.fallback.show import is_private, show_call

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket as socket
    from collections.abc import Sequence
    from typing import NoReturn

PIPE_BUF = 4096
"""A pipe that has room takes as much whole."""

PASSED = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGCONT", "SIGWINCH")
ONLY_STOP = (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
"""No process dies of these: raised, they would hold this one for ever."""

carried = 0


class Stream:
    """One of the subject's two output streams on its way to the tests."""

    def __init__(self, source: int, to: int) -> None:
        self.source = source  # -1: there is nothing (more) to carry
        self.to = to
        self.held = b""

    def stop(self) -> None:
        if self.source >= 0:
            os.close(self.source)
        self.source, self.held = -1, b""

    def fill(self, most: int) -> None:
        global carried
        try:
            self.held = os.read(self.source, PIPE_BUF)
        except BlockingIOError:
            return
        except OSError:
            self.held = b""
        carried += len(self.held)
        if not self.held:
            self.stop()
        elif carried > most:
            die(f"ended: the submission printed more than {most} bytes in one call")

    def carry(self, most: int) -> bool:
        """Move what can be moved without waiting; False when there is nothing to do for now."""
        if self.source >= 0 and not self.held:
            self.fill(most)
        if not self.held or not has_room(self.to, 0):
            return False
        try:
            os.write(self.to, self.held)
            self.held = b""
        except OSError:
            self.stop()
        return True

    def drain(self, most: int) -> None:
        while self.carry(most) or self.held:
            if self.held:
                has_room(self.to, None)


def has_room(descriptor: int, milliseconds: int | None) -> bool:
    room = select.poll()
    room.register(descriptor, select.POLLOUT)
    return bool(room.poll(milliseconds))


def read_conf() -> tuple[bytes, bytes, int]:
    try:
        with open(CONF_PATH, "rb") as file:
            conf = dict(line.split(b"=", 1) for line in file.read().splitlines())
        return conf[b"tests"], conf[b"workspace"], int(conf[b"output"])
    except OSError as error:
        die(f"cannot read {CONF_PATH}", error)
    except (KeyError, ValueError):
        die(f"cannot read {CONF_PATH}")


def is_carried(descriptor: int, workspace: bytes) -> tuple[int, int] | None:
    """What the stream is, if it is carried: pipes are, so that they can be counted and no daemon of the subject can
    hold the tests' own, and so are files the subject could not open itself, such as what pytest captures into."""
    try:
        information = os.fstat(descriptor)
        path = os.readlink(b"/proc/self/fd/%d" % descriptor)
    except OSError:
        return None
    shared = path.startswith((b"/tmp/", workspace + b"/"))
    if stat.S_ISFIFO(information.st_mode) or (stat.S_ISREG(information.st_mode) and not shared):
        return information.st_dev, information.st_ino
    return None


def divert(workspace: bytes) -> tuple[list[int], list[Stream]]:
    """What is not carried is handed over as it is. Two names of one pipe stay one pipe."""
    given, streams = [0, 1, 2], []
    kinds = [is_carried(1, workspace), is_carried(2, workspace)]
    for number, kind in enumerate(kinds, start=1):
        if kind is None:
            continue
        if number == 2 and kind == kinds[0]:
            given[2] = given[1]
            continue
        source, given[number] = os.pipe()
        os.set_blocking(source, False)
        streams.append(Stream(source, number))
    return given, streams


def ask(argv: Sequence[bytes], variables: Sequence[bytes], cwd: bytes, given: Sequence[int]) -> socket.socket:
    text = b"\0".join([cwd, *argv, *variables, b""])
    memory = os.memfd_create("call")
    rest = memoryview(text)
    while rest:
        rest = rest[os.write(memory, rest) :]
    try:
        box = connect_to(SOCKET_PATH)
    except OSError as error:
        die("no answer from the subject's box", error)
    try:
        send_descriptors(box, REQUEST.pack(MAGIC, len(argv), len(variables), len(text)), [*given, memory])
    except OSError as error:
        die("cannot pass the call on", error)
    for descriptor in {memory, *given} - {0, 1, 2}:
        os.close(descriptor)
    box.setblocking(False)
    return box


def end_as(status: int, reason: int) -> NoReturn:
    if reason == TOO_MUCH_MEMORY:
        complain("ended: the submission took more memory than it may")
    if reason == TOO_MANY_PROCESSES:
        complain("ended: the submission started more processes than it may")
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) not in ONLY_STOP:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        default_signals()
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(status_to_exit(status))


def wait_for_more(box: socket.socket, signals: int, streams: Sequence[Stream]) -> None:
    """What is held waits for room, what is not waits for something to hold."""
    watched = select.poll()
    watched.register(box.fileno(), select.POLLIN)
    watched.register(signals, select.POLLIN)
    for stream in streams:
        if stream.held:
            watched.register(stream.to, select.POLLOUT)
        elif stream.source >= 0:
            watched.register(stream.source, select.POLLIN)
    watched.poll()


def run_main(argv: Sequence[str]) -> NoReturn:
    if not argv:
        die("usage: run COMMAND...")
    words = [os.fsencode(word) for word in argv]
    try:
        cwd = os.getcwdb()
    except OSError as error:
        die("no working directory", error)
    tests, workspace, most = read_conf()
    variables = [variable for variable in environment() if not is_private(variable)]
    show_call(words, variables, cwd, tests)
    signals = hear_signals([getattr(signal, name) for name in PASSED])
    given, streams = divert(workspace)
    box = ask(words, variables, cwd, given)
    while True:
        try:
            reply = box.recv(REPLY.size)
        except BlockingIOError:
            pass
        except OSError as error:
            die("the subject's box gave up this call", error)
        else:
            if len(reply) != REPLY.size:
                die("the subject's box gave up this call")
            for stream in streams:
                stream.drain(most)
            end_as(*REPLY.unpack(reply))
        for number in signals_heard(signals):
            try:
                box.send(SIGNAL.pack(number))
            except OSError:
                pass
        moved = [stream.carry(most) for stream in streams]
        if not any(moved):
            wait_for_more(box, signals, streams)
