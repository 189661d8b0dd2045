"""seal, join and reap: the modes that need no socket, as in `main.c`."""

from __future__ import annotations

import os
import signal
import time

from slop_code.execution.helper.fallback.kernel import (
    FORBIDS_LINKS,
    MS_BIND,
    MS_NODEV,
    MS_NOSUID,
    MS_NOSYMFOLLOW,
    MS_REMOUNT,
    PR_SET_CHILD_SUBREAPER,
    PR_SET_PDEATHSIG,
    drop_capabilities,
    execute,
    join_groups,
    leave_keyrings,
    mount,
    restrict_calls,
    try_libc,
)
from slop_code.execution.helper.fallback.shared import (
    FAILED,
    bound,
    default_signals,
    die,
    environment,
    send_signal,
    status_to_exit,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn


def replace_by(words: Sequence[str], variables: Sequence[bytes]) -> NoReturn:
    die(f"cannot run {words[0]}", execute([os.fsencode(word) for word in words], variables))


def lower(name: str, value: str) -> None:
    import resource

    most = resource.getrlimit(getattr(resource, name))[1]
    if int(value) > 0 and (most == resource.RLIM_INFINITY or int(value) < most):
        bound(name, int(value))


def seal_options(argv: Sequence[str], variables: dict[bytes, bytes]) -> tuple[int, int, int]:
    """Changes the variables; the user and group to become, and how many words that took."""
    uid = gid = -1
    at = 0
    while at < len(argv) and argv[at].startswith("--") and argv[at] != "--":
        words = argv[at + 1 : at + 3]
        if argv[at] == "--clearenv":
            variables.clear()
            at += 1
            continue
        if argv[at] == "--chdir" and words:
            try:
                os.chdir(words[0])
            except OSError as error:
                die(f"no folder {words[0]}", error)
            at += 2
            continue
        if argv[at] == "--user" and len(words) == 2:
            uid, gid = int(words[0]), int(words[1])
        elif argv[at] == "--setenv" and len(words) == 2:
            variables[os.fsencode(words[0])] = os.fsencode(words[1])
        else:
            die(f"seal: {argv[at]} does not fit here")
        at += 3
    return uid, gid, at


def seal_main(argv: Sequence[str]) -> NoReturn:
    """No file grows beyond BYTES, no more PROCESSES than that (0: any number), links below the paths are never
    followed again, and no capability is left."""
    if len(argv) < 4:
        die("seal: no command")
    lower("RLIMIT_FSIZE", argv[0])
    lower("RLIMIT_NPROC", argv[1])
    variables = {name: value for name, _, value in (variable.partition(b"=") for variable in environment())}
    uid, gid, took = seal_options(argv[2:], variables)
    rest = argv[2 + took :]
    end = rest.index("--") if "--" in rest else len(rest)
    for path in rest[:end]:
        try:
            mount(None, path, None, MS_REMOUNT | MS_BIND | MS_NOSYMFOLLOW | MS_NOSUID | MS_NODEV)
        except OSError as error:
            die(f"cannot forbid links below {path}", error)
        if not os.statvfs(path).f_flag & FORBIDS_LINKS:  # before Linux 5.10 the flag is taken and ignored
            die(f"this kernel cannot forbid links below {path}")
    if end + 1 >= len(rest):
        die("seal: no command")
    drop_capabilities(uid, gid)
    restrict_calls()
    replace_by(rest[end + 1 :], [name + b"=" + value for name, value in variables.items()])


def plain_main(argv: Sequence[str]) -> int:
    """Every part of these that is there is a folder and no link."""
    for path in argv:
        parts = path.strip("/").split("/")
        for end in range(1, len(parts) + 1):
            part = "/" + "/".join(parts[:end])
            if os.path.lexists(part) and (os.path.islink(part) or not os.path.isdir(part)):
                die(f"{part} is no folder")
    return 0


def merge_main(argv: Sequence[str]) -> NoReturn:
    """What it says to stderr stands among what it says to stdout, in the order it was said."""
    if not argv:
        die("merge: no command")
    os.dup2(1, 2)
    replace_by(argv, environment())


def join_main(argv: Sequence[str]) -> NoReturn:
    """Enter the control groups whose `cgroup.procs` these are."""
    end = argv.index("--") if "--" in argv else len(argv)
    if end + 1 >= len(argv):
        die("join: no command")
    join_groups(argv[:end])
    leave_keyrings()
    replace_by(argv[end + 1 :], environment())


def kill_children() -> bool:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:
            children = file.read().split()
    except OSError:
        return False
    for child in children:
        send_signal(int(child), signal.SIGKILL)
    return bool(children)


def reap_children() -> dict[int, int]:
    """The statuses of those that have ended."""
    ended: dict[int, int] = {}
    try:
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended[found[0]] = found[1]
    except ChildProcessError:
        pass
    return ended


def reap_main(argv: Sequence[str]) -> int:
    """Whatever the command leaves behind, daemons included, goes when it does."""
    if not argv:
        die("reap: no command")
    watched = [signal.SIGCHLD, signal.SIGTERM, signal.SIGINT]
    signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    try_libc("prctl", PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try_libc("prctl", PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    command = os.fork()
    if command == 0:
        try:
            default_signals()
            os.setpgid(0, 0)
            replace_by(argv, environment())
        finally:
            os._exit(FAILED)
    result = 128 + signal.SIGTERM
    while True:
        told_to_stop = signal.sigwait(watched) != signal.SIGCHLD
        ended = reap_children()
        if command in ended:
            result = status_to_exit(ended[command])
        if told_to_stop or command in ended:
            break
    while kill_children():
        reap_children()
        time.sleep(0.001)
    return result
