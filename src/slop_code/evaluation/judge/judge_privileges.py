"""System calls of forked judges: entering namespaces, and dropping everything that `slopbox restrict` drops.

The fork server loads it as `slop_code_judge_privileges`. Python has no functions for these calls before version 3.12.
"""

from __future__ import annotations

import ctypes
import os
import resource
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP = 1, 4, 22, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 36, 38, 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
SECCOMP_MODE_FILTER = 2
SECCOMP_INSTRUCTION = 8
MAX_CAPABILITY = 63
CAPABILITY_VERSION_3 = 0x20080522
KEYCTL = {"x86_64": 250, "aarch64": 219}
KEYCTL_JOIN_SESSION_KEYRING = 1

_libc = ctypes.CDLL(None, use_errno=True)


class FilterProgram(ctypes.Structure):
    """`struct sock_fprog` of the kernel."""

    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


def prctl(option: int, *values: int) -> int:
    words = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    return int(_libc.prctl(option, *words))


def check(result: int, step: str) -> None:
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{step}: {os.strerror(error)}")


def die_with_parent(parent: int | None = None) -> None:
    """SIGKILL when the parent ends. A change of credentials clears it, so it is set after the last one.

    `parent`: its process id, where it is visible, since it may have ended before.
    """
    check(prctl(PR_SET_PDEATHSIG, 9), "die with the parent")
    if parent is not None and os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Daemons become children of this process, which can find and kill them then."""
    check(prctl(PR_SET_CHILD_SUBREAPER, 1), "adopt orphans")


def enter_namespaces(descriptors: Sequence[int], names: Sequence[str]) -> None:
    """Skips a namespace that the process is in already: the kernel refuses to enter the same user namespace again."""
    own = [os.stat(f"/proc/self/ns/{name}") for name in names]  # read first: the last but one changes what /proc is
    for descriptor, name, present in zip(descriptors, names, own, strict=True):
        if not os.path.samestat(os.fstat(descriptor), present):
            check(_libc.setns(descriptor, 0), f"enter the {name} namespace")
        os.close(descriptor)


def lower_file_size(limit: int) -> None:
    """No file of the judge grows beyond it, whatever a submission makes the tests write."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    wanted = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_FSIZE, (wanted, wanted))


def drop_privileges(filter_code: bytes) -> None:
    """The same steps in the same order as `restrict_main` of the helper; `filter_code` is its filter of system calls.

    The order matters: the bounding set can be changed only while there are capabilities, and a filter can be set
    without them only after no_new_privs.
    """
    # Keyrings belong to no namespace: judges of one template would share that of the template.
    if number := KEYCTL.get(os.uname().machine):
        _libc.syscall(ctypes.c_long(number), ctypes.c_long(KEYCTL_JOIN_SESSION_KEYRING), None)
    # Ambient capabilities survive execve. Kernels that refuse this call (before 4.3) have none.
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    # With an empty bounding set no program with file capabilities gives any back. Kernels have fewer than are tried.
    for capability in range(MAX_CAPABILITY + 1):
        prctl(PR_CAPBSET_DROP, capability)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    check(_libc.capset(header, (ctypes.c_uint32 * 6)()), "drop capabilities")
    check(prctl(PR_SET_NO_NEW_PRIVS, 1), "set no_new_privs")
    if not filter_code or len(filter_code) % SECCOMP_INSTRUCTION:
        raise ValueError("the filter of system calls is damaged")
    code = ctypes.create_string_buffer(filter_code, len(filter_code))
    program = FilterProgram(len(filter_code) // SECCOMP_INSTRUCTION, ctypes.addressof(code))
    check(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(program)), "restrict system calls")
    # A change of credentials can make a process undumpable: its files in /proc would belong to root, and the tests
    # could not read them. No process of the submission can see this one.
    check(prctl(PR_SET_DUMPABLE, 1), "own its files in /proc")
