"""pair STEP… [--judge WORD…]: makes what the boxes share and ends with the judge; `pair.c` has the steps."""

from __future__ import annotations

import os
import select
import signal
import socket

from slop_code.execution.helper.fallback.archive import copied, copy_tree, pack, pack_end, unpack
from slop_code.execution.helper.fallback.kernel import (
    MS_BIND,
    MS_NODEV,
    MS_NOSUID,
    MS_RDONLY,
    MS_REMOUNT,
    execute,
    join_groups,
    leave_keyrings,
    mount,
)
from slop_code.execution.helper.fallback.shared import (
    FAILED,
    SUBJECT_BOX_ENDED,
    complain,
    default_signals,
    die,
    environment,
    hear_signals,
    make_folders,
    send_descriptors,
    send_signal,
    signals_heard,
    status_to_exit,
    wait_for_all,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

PRIVATE = MS_NOSUID | MS_NODEV
END_OF_TALK = b"\4"
PAGE = 4096


def mount_or_die(
    trouble: str, source: str | None, target: str, kind: str | None, flags: int, options: str = ""
) -> None:
    try:
        mount(source, target, kind, flags, options or None)
    except OSError as error:
        die(f"{trouble} {target}", error)


def mkdir_step(path: str, mode: str) -> None:
    make_folders(path, 0o755)
    try:
        os.chmod(path, int(mode, 8))
    except OSError as error:
        die(f"cannot set the mode of {path}", error)


def tmpfs_step(path: str, options: str) -> None:
    make_folders(path, 0o755)
    mount_or_die("cannot mount", "tmpfs", path, "tmpfs", PRIVATE, options)


def overlay_step(lowers: str, upper: str, work: str, target: str) -> None:
    options = f"lowerdir={lowers},upperdir={upper},workdir={work}"
    try:
        mount("overlay", target, "overlay", PRIVATE, options + ",userxattr")
        return
    except OSError:
        pass  # before Linux 5.11 there is no such option, and root needs none
    mount_or_die("cannot mount the overlay on", "overlay", target, "overlay", PRIVATE, options)


def bind_step(source: str, target: str, access: str) -> None:
    mount_or_die("cannot mount", source, target, None, MS_BIND)
    flags = MS_REMOUNT | MS_BIND | PRIVATE | (MS_RDONLY if access == "ro" else 0)
    mount_or_die("cannot close", None, target, None, flags)


def own_step(path: str, uid: str, gid: str) -> None:
    try:
        os.chown(path, int(uid), int(gid))
    except OSError as error:
        die(f"cannot give away {path}", error)


MOUNT_STEPS: dict[str, tuple[int, Callable[..., object]]] = {
    "--mkdir": (2, mkdir_step),
    "--tmpfs": (2, tmpfs_step),
    "--overlay": (4, overlay_step),
    "--bind": (3, bind_step),
    "--own": (3, own_step),
    "--copy": (4, lambda source, target, uid, gid: copy_tree(source, target, int(uid), int(gid))),
    "--unpack": (2, lambda uid, gid: unpack(0, int(uid), int(gid))),
}
"""How many words each takes, and what it does."""


class Pair:
    """What the steps about boxes have led to."""

    def __init__(self) -> None:
        self.groups: list[str] = []
        self.given: list[str] = []
        self.listener: socket.socket | None = None
        self.admitted: socket.socket | None = None
        self.ready = self.holding = self.talking = False
        self.heard = (-1, -1)
        """What the judge reads, as long as somebody talks to it."""
        self.subject = -1
        self.steps: dict[str, tuple[int, Callable[..., object]]] = {
            **MOUNT_STEPS,
            "--join": (1, self.groups.append),
            "--give": (1, self.given.append),
            "--listen": (1, self.listen),
            "--admit": (1, self.admit),
            "--ready": (0, self.say_ready),
            "--talk": (0, self.start_talk),
            "--hold": (0, self.hold),
        }

    def listen(self, path: str) -> None:
        try:
            self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self.listener.bind(path)
            self.listener.listen(512)
        except OSError as error:
            die(f"cannot listen on {path}", error)
        try:
            os.chmod(path, 0o666)
        except OSError as error:
            die(f"cannot open up {path}", error)

    def admit(self, seconds: str) -> None:
        if self.listener is None:
            die("cannot admit the subject's box")
        if os.getpid() != 1:
            die("not process 1: whoever else is here could end this or change what it sends")
        watched = select.poll()
        watched.register(self.listener.fileno(), select.POLLIN)
        watched.register(0, 0 if self.talking else select.POLLIN)
        found = dict(watched.poll(int(seconds) * 1000))
        if not found:
            die(f"the subject's box did not start within {seconds} s")
        if 0 in found:
            die("nobody waits for this any more")
        try:
            self.admitted = self.listener.accept()[0]
            send_descriptors(self.admitted, b"\0", [self.listener.fileno()])
        except OSError as error:
            die("cannot admit the subject's box", error)
        self.stop_listening()

    def stop_listening(self) -> None:
        if self.listener is not None:
            self.listener.close()
            self.listener = None

    def say_ready(self) -> None:
        self.ready = True
        os.write(1, b"ready %d %d %d\n" % (copied.entries, copied.bytes, copied.sum))

    def start_talk(self) -> None:
        self.heard, self.talking = os.pipe(), True

    def hold(self) -> None:
        self.holding = True

    def start_subject(self, words: Sequence[str]) -> int:
        """How many words it took."""
        count = int(words[0]) if words and words[0].isdigit() else 0
        if not 1 <= count < len(words):
            die(f"pair: --subject {count}")
        self.subject = self.start(words[1 : count + 1], is_subject=True)
        return 1 + count

    def start(self, words: Sequence[str], *, is_subject: bool = False) -> int:
        pid = os.fork()
        if pid == 0:
            try:
                self.become_box([os.fsencode(word) for word in words], is_subject)
            finally:
                os._exit(FAILED)
        return pid

    def become_box(self, words: Sequence[bytes], is_subject: bool) -> NoReturn:
        """The judge of a container leaves stdin and stdout to us: what it prints goes to stderr."""
        default_signals()
        leave_keyrings()
        null = os.open("/dev/null", os.O_RDWR)
        if is_subject:
            os.dup2(null, 0)
            os.dup2(null, 1)
            if self.listener is not None:
                os.dup2(self.listener.fileno(), 3)
                os.set_inheritable(3, True)
            join_groups(self.groups)
        elif self.ready:
            os.dup2(self.heard[0] if self.talking else null, 0)
            os.dup2(2, 1)
        die(f"cannot run {os.fsdecode(words[0])}", execute(words, environment()))

    def wait_for(self, judge: int, signals: int) -> int:
        """The status of the judge when it ends, or of this when there is a reason to end it."""
        watched = select.poll()
        watched.register(signals, select.POLLIN)
        if self.admitted is not None:
            watched.register(self.admitted.fileno(), select.POLLIN)
        while True:
            if self.ready:
                watched.register(0, select.POLLIN if self.has_room(watched) else 0)
            found = dict(watched.poll())
            if self.talking and found.get(0, 0) & select.POLLIN and self.pass_on(watched):
                del found[0]
            told_to_stop = signal.SIGTERM in signals_heard(signals)
            status = self.end_of(judge)
            if status is not None:
                return status
            if told_to_stop or 0 in found:
                return signal.SIGKILL if judge > 0 else 0
            if self.admitted is not None and self.admitted.fileno() in found:
                complain("the subject's box ended before the tests")
                return SUBJECT_BOX_ENDED << 8

    def has_room(self, watched: select.poll) -> bool:
        """For a page at least: as we keep both ends, writing that much neither waits nor fails."""
        if self.heard[1] < 0:
            return True
        room = bool(select.select([], [self.heard[1]], [], 0)[1])
        watched.register(self.heard[1], 0 if room else select.POLLOUT)
        return room

    def pass_on(self, watched: select.poll) -> bool:
        """Whether there is more to come."""
        text = os.read(0, PAGE)
        said, ended, _ = text.partition(END_OF_TALK)
        if self.heard[1] >= 0 and said:
            os.write(self.heard[1], said)
        if self.heard[1] >= 0 and ended:
            watched.unregister(self.heard[1])
            for end in self.heard:
                os.close(end)
            self.heard = (-1, -1)
        return bool(text)

    def end_of(self, judge: int) -> int | None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return None
            if pid == 0:
                return None
            if pid == judge:
                return status
            if pid == self.subject:
                complain(f"the subject's box ended before the tests (status {status_to_exit(status)})")
                return SUBJECT_BOX_ENDED << 8

    def give_back(self, judge: int, status: int) -> None:
        """In a container: nobody is left who could change what is sent."""
        send_signal(-1 if os.getpid() == 1 else judge, signal.SIGKILL)
        wait_for_all()
        for path in self.given:
            pack(1, path, path, 0)
        pack_end(1, status)


def pair_main(argv: Sequence[str]) -> int:
    os.umask(0o022)
    signals = hear_signals([signal.SIGCHLD, signal.SIGTERM])
    pair, at = Pair(), 0
    while at < len(argv) and argv[at] != "--judge":
        words = argv[at + 1 :]
        if argv[at] == "--subject":
            at += 1 + pair.start_subject(words)
            continue
        count, step = pair.steps.get(argv[at], (len(argv), pair.hold))
        if count > len(words):
            die(f"pair: {argv[at]} does not fit here")
        step(*words[:count])
        at += 1 + count
    if pair.holding:
        return status_to_exit(pair.wait_for(-1, signals))
    if at + 1 >= len(argv):
        die("pair: no judge")
    judge = pair.start(argv[at + 1 :])
    pair.stop_listening()
    status = pair.wait_for(judge, signals)
    if pair.ready:
        pair.give_back(judge, status)
    return status_to_exit(status)
