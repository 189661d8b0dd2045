"""What the modes share, as in `slopbox.h`; everything here is cheap to load, as each call of a test loads it."""

from __future__ import annotations

import _socket as socket
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as signal
    from collections.abc import Iterable
    from typing import NoReturn
else:
    # Like `socket`, the module without the underscore takes longer to load than all of a call.
    import _signal as signal

SOCKET_PATH = "/slop/gate/socket"
CONF_PATH = "/slop/call/conf"
SHOWN_PATH = b"/slop/shown"
DONE_PATH = b"/slop/call/done"

MAGIC = 0x534C4F50
REQUEST = struct.Struct("=IIII")  # magic, words of the command, variables, bytes of the memory file
REQUEST_FDS = 4
REPLY = struct.Struct("=iI")  # the status as wait(2) gives it, the reason
SIGNAL = struct.Struct("=i")
ENDED_ITSELF, TOO_MUCH_MEMORY, TOO_MANY_PROCESSES = range(3)

SUBJECT_BOX_ENDED, FAILED, NOT_EXECUTABLE, NOT_FOUND = range(124, 128)
PATH_MAX = 4096
LAST_SIGNAL = 64


def complain(text: str) -> None:
    try:
        os.write(2, os.fsencode(f"slop-code: {text}\n"))
    except OSError:
        pass


def die(text: str, error: OSError | None = None) -> NoReturn:
    complain(f"{text}: {os.strerror(error.errno)}" if error and error.errno else text)
    os._exit(FAILED)


def status_to_exit(status: int) -> int:
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def default_signals() -> None:
    for number in range(1, LAST_SIGNAL + 1):
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            pass
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def hear_signals(numbers: Iterable[int]) -> int:
    """A descriptor that gives one byte, its number, for each of these signals that comes."""
    ends = os.pipe()
    for end in ends:
        os.set_blocking(end, False)
    signal.set_wakeup_fd(ends[1], warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
    return ends[0]


def signals_heard(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except BlockingIOError:
        return b""


def environment() -> list[bytes]:
    """As it was handed to this process; the interpreter may have added a locale to its own since."""
    with open("/proc/self/environ", "rb") as file:
        return file.read().split(b"\0")[:-1]


def make_folders(path: str | bytes, mode: int) -> None:
    text = os.fsencode(path)
    for at, character in enumerate(text):
        if at and character == ord("/"):
            try:
                os.mkdir(text[:at], 0o755)
            except OSError:
                pass
    try:
        os.mkdir(text, mode)
    except FileExistsError:
        pass
    except OSError as error:
        die(f"cannot make {os.fsdecode(text)}", error)


def connect_to(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(path)
    return connection


def send_descriptors(connection: socket.socket, packet: bytes, descriptors: Iterable[int]) -> None:
    words = b"".join(map(SIGNAL.pack, descriptors))
    connection.sendmsg([packet], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, words)])


def receive_descriptors(connection: socket.socket, size: int, count: int) -> tuple[bytes, list[int]] | None:
    """One packet with just so many descriptors, None when it is not that."""
    space = socket.CMSG_SPACE(count * SIGNAL.size)
    try:
        packet, control, _, _ = connection.recvmsg(size, space, socket.MSG_CMSG_CLOEXEC)
    except OSError:
        return None
    for _, kind, words in control:
        if kind == socket.SCM_RIGHTS:
            found = [number for (number,) in SIGNAL.iter_unpack(words[: len(words) // SIGNAL.size * SIGNAL.size])]
            if len(found) == count:
                return packet, found
            for descriptor in found:
                os.close(descriptor)
    return None


def bound(name: str, value: int) -> None:
    import resource

    try:
        resource.setrlimit(getattr(resource, name), (value, value))
    except (OSError, ValueError):
        pass


def send_signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        pass


def wait_for_all() -> None:
    """Until no child is left; in process 1 of a box that is anyone."""
    try:
        while True:
            os.wait()
    except ChildProcessError:
        pass
