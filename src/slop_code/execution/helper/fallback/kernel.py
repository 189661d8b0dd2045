"""What the standard library has no name for: mounts, capabilities, the filter of system calls."""

from __future__ import annotations

import errno
import os
import signal
import struct

from slop_code.execution.helper.fallback.shared import die

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes
    from collections.abc import Sequence

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_NOSYMFOLLOW, MS_BIND = 1, 2, 4, 32, 256, 4096
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP = 1, 4, 22, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 36, 38, 47
CAPABILITY_VERSION_3 = 0x20080522
KEYCTL_JOIN_SESSION_KEYRING = 1
AF_VSOCK = 40

CLONE_NEWUSER = 0x10000000
FORBIDS_LINKS = 0x2000
"""As statvfs gives it back."""

PRIO_USER, SUPERVISOR = 2, 1
NUMBERS_OF_ALL = {"unshare": 97, "socket": 198, "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220}
NUMBERS_OF_ALL |= {"sched_setparam": 118, "sched_setscheduler": 119, "sched_setaffinity": 122, "setpriority": 140}
NUMBERS_OF_ALL |= {"prlimit64": 261, "sched_setattr": 274}
NUMBERS_OF_X86_64 = {"socket": 41, "clone": 56, "add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272}
NUMBERS_OF_X86_64 |= {"setpriority": 141, "sched_setparam": 142, "sched_setscheduler": 144, "sched_setaffinity": 203}
NUMBERS_OF_X86_64 |= {"prlimit64": 302, "sched_setattr": 314}
CLONE3, IO_URING = 435, 425
PROCESSORS = {
    "x86_64": (0xC000003E, NUMBERS_OF_X86_64),
    "aarch64": (0xC00000B7, NUMBERS_OF_ALL),
    "riscv64": (0xC00000F3, NUMBERS_OF_ALL),
    "loongarch64": (0xC0000102, NUMBERS_OF_ALL),
}
"""How a filter knows the processor, and the system calls' numbers there; newer processors share them."""


def libc() -> ctypes.CDLL:
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def call_libc(name: str, *words: int | bytes | None) -> None:
    """Numbers go as the machine's longs, bytes as pointers to them; a failure is an OSError."""
    import ctypes

    converted = [ctypes.c_long(word) if isinstance(word, int) else ctypes.c_char_p(word) for word in words]
    if getattr(libc(), name)(*converted) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def try_libc(name: str, *words: int | bytes | None) -> None:
    try:
        call_libc(name, *words)
    except OSError:
        pass


def mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    encoded = [None if word is None else os.fsencode(word) for word in (source, target, kind, options)]
    call_libc("mount", *encoded[:3], flags, encoded[3])


def processor() -> tuple[int, dict[str, int]]:
    machine = os.uname().machine
    if machine not in PROCESSORS:
        die(f"no filter for this processor: {machine}")
    return PROCESSORS[machine]


def leave_keyrings() -> None:
    """Keyrings belong to no namespace: without a session of its own a box would share the host's."""
    try_libc("syscall", processor()[1]["keyctl"], KEYCTL_JOIN_SESSION_KEYRING, None)


def drop_capabilities(uid: int = -1, gid: int = -1) -> None:
    """Negative: stay who one is."""
    try_libc("prctl", PR_CAP_AMBIENT, 4, 0, 0, 0)
    for capability in range(64):
        try_libc("prctl", PR_CAPBSET_DROP, capability, 0, 0, 0)
    become_user(uid, gid)
    try:
        call_libc("capset", struct.pack("=Ii", CAPABILITY_VERSION_3, 0), bytes(24))
    except OSError as error:
        die("cannot drop capabilities", error)
    try:
        call_libc("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    except OSError as error:
        die("cannot set no_new_privs", error)


def become_user(uid: int, gid: int) -> None:
    try:
        if gid >= 0:
            os.setgroups([gid])
            os.setresgid(gid, gid, gid)
    except OSError as error:
        die(f"cannot become group {gid}", error)
    try:
        if uid >= 0:
            os.setresuid(uid, uid, uid)
    except OSError as error:
        die(f"cannot become user {uid}", error)


def call_filter() -> bytes:
    """What no namespace holds back: keyrings, and sockets to the host of a virtual machine; new namespaces of
    users, in which a process would have capabilities again; and the limits and the priority of the box's first
    process, which has the submission's own user. A jump skips so many lines.
    """
    load, jump_equal, jump_at_least, jump_if_set, answer = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, refuse = 0x7FFF0000, 0x00050000
    architecture, numbers = processor()
    steps = [
        (load, 0, 0, 4),
        (jump_equal, 1, 0, architecture),
        (answer, 0, 0, refuse | errno.ENOSYS),
        (load, 0, 0, 0),
        (jump_at_least, 17, 0, 0x40000000),  # x86_64's other numbering
        (jump_equal, 16, 0, IO_URING),  # what is asked for through it, no filter sees
        (jump_equal, 15, 0, IO_URING + 1),
        (jump_equal, 14, 0, IO_URING + 2),
        (jump_equal, 13, 0, numbers["keyctl"]),
        (jump_equal, 12, 0, numbers["add_key"]),
        (jump_equal, 11, 0, numbers["request_key"]),
        (jump_equal, 10, 0, CLONE3),  # its flags cannot be looked at; libraries then use clone
        (jump_equal, 10, 0, numbers["socket"]),
        (jump_equal, 13, 0, numbers["unshare"]),
        (jump_equal, 12, 0, numbers["clone"]),
        (jump_equal, 15, 0, numbers["prlimit64"]),
        (jump_equal, 14, 0, numbers["sched_setaffinity"]),
        (jump_equal, 13, 0, numbers["sched_setscheduler"]),
        (jump_equal, 12, 0, numbers["sched_setparam"]),
        (jump_equal, 11, 0, numbers["sched_setattr"]),
        (jump_equal, 14, 0, numbers["setpriority"]),
        (answer, 0, 0, allow),
        (answer, 0, 0, refuse | errno.ENOSYS),
        (load, 0, 0, 16),  # of socket: the family
        (jump_equal, 1, 0, AF_VSOCK),
        (answer, 0, 0, allow),
        (answer, 0, 0, refuse | errno.EAFNOSUPPORT),
        (load, 0, 0, 16),  # of unshare, clone: flags
        (jump_if_set, 1, 0, CLONE_NEWUSER),
        (answer, 0, 0, allow),
        (answer, 0, 0, refuse | errno.EPERM),
        (load, 0, 0, 16),  # of the others: the process
        (jump_equal, 1, 0, SUPERVISOR),
        (answer, 0, 0, allow),
        (answer, 0, 0, refuse | errno.EPERM),
        (load, 0, 0, 16),  # of setpriority: whose, and then who
        (jump_equal, 3, 0, PRIO_USER),
        (load, 0, 0, 24),
        (jump_equal, 1, 0, SUPERVISOR),
        (answer, 0, 0, allow),
        (answer, 0, 0, refuse | errno.EPERM),
    ]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def restrict_calls() -> None:
    import ctypes

    steps = ctypes.create_string_buffer(call_filter())
    program = struct.pack("@HP", (len(steps) - 1) // 8, ctypes.addressof(steps))
    try_libc("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    try:
        call_libc("prctl", PR_SET_SECCOMP, 2, program, 0, 0)
    except OSError as error:
        die("cannot restrict system calls", error)


def execute(words: Sequence[bytes], variables: Sequence[bytes]) -> OSError:
    """execvp(3) in this environment, which is handed on to the byte; returns only what went wrong."""
    import ctypes

    # The interpreter ignores these; what it becomes would inherit that.
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    argv = (ctypes.c_char_p * (len(words) + 1))(*words, None)
    environ = (ctypes.c_char_p * (len(variables) + 1))(*variables, None)
    places = next((word[5:] for word in variables if word.startswith(b"PATH=")), os.fsencode(os.defpath))
    folders = [b""] if b"/" in words[0] else [os.path.join(place, b"") for place in places.split(b":")]
    number = errno.ENOENT
    for folder in folders:
        libc().execve(folder + words[0], argv, environ)
        if ctypes.get_errno() not in (errno.ENOENT, errno.ENOTDIR, errno.EACCES):
            number = ctypes.get_errno()
            break
        number = errno.EACCES if errno.EACCES in (number, ctypes.get_errno()) else ctypes.get_errno()
    return OSError(number, os.strerror(number))


def join_groups(files: Sequence[str]) -> None:
    for file in files:
        try:
            with open(file, "wb", buffering=0) as group:
                group.write(b"0")
        except OSError as error:
            die(f"cannot enter the control group {file}", error)
