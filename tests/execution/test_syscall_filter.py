"""The system-call filter: every row of its table, in a real box and instruction by instruction."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import platform
import re
import socket
import subprocess
import sys
from dataclasses import dataclass

import pytest

from slop_code.execution.bubblewrap import bwrap_binary
from slop_code.execution.bubblewrap.system_mounts import system_arguments
from slop_code.execution.helper import helper_path

pytestmark = pytest.mark.e2e

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
OTHER_NUMBERING = 0x40000000
NEW_USER_NAMESPACE = 0x10000000
NEW_MOUNT_NAMESPACE = 0x00020000
THREAD_FLAGS = 0x3D0F00
PRIO_PROCESS, PRIO_USER = 0, 2
PTRACE_POKEDATA, PTRACE_OLDSETOPTIONS, PTRACE_SETOPTIONS, PTRACE_SEIZE = 5, 21, 0x4200, 0x4206
PTRACE_O_TRACEEXIT, PTRACE_O_EXITKILL = 0x40, 0x100000
NUMBERS = {
    "x86_64": {
        "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "keyctl": 250, "add_key": 248,
        "request_key": 249, "clone3": 435, "socket": 41, "unshare": 272, "clone": 56, "prlimit64": 302,
        "sched_setaffinity": 203, "sched_setscheduler": 144, "sched_setparam": 142, "sched_setattr": 314,
        "setpriority": 141, "fcntl": 72, "ptrace": 101,
    },
    "aarch64": {
        "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "keyctl": 219, "add_key": 217,
        "request_key": 218, "clone3": 435, "socket": 198, "unshare": 97, "clone": 220, "prlimit64": 261,
        "sched_setaffinity": 122, "sched_setscheduler": 119, "sched_setparam": 118, "sched_setattr": 274,
        "setpriority": 140, "fcntl": 25, "ptrace": 117,
    },
}  # fmt: skip
NATIVE, NATIVE_ARCHITECTURE = NUMBERS[platform.machine()], ARCHITECTURES[platform.machine()]


@dataclass(frozen=True)
class Row:
    """A row of the table: with these arguments the call fails with this error, with the others it is the kernel's."""

    call: str
    error: int
    refused: tuple[int, ...] = (0, 0)
    allowed: tuple[int, ...] | None = None


ROWS = [
    *[Row(f"io_uring_{name}", errno.ENOSYS) for name in ("setup", "enter", "register")],
    *[Row(name, errno.ENOSYS) for name in ("keyctl", "add_key", "request_key", "clone3")],
    Row("fcntl", errno.EINVAL, (0, fcntl.F_SETLEASE, fcntl.F_RDLCK), (0, fcntl.F_GETFD, 0)),
    Row("socket", errno.EAFNOSUPPORT, (socket.AF_VSOCK, socket.SOCK_STREAM), (socket.AF_UNIX, socket.SOCK_STREAM)),
    Row("clone", errno.EPERM, (NEW_USER_NAMESPACE | THREAD_FLAGS, 0), (THREAD_FLAGS, 0)),
    Row("clone", errno.EPERM, (NEW_MOUNT_NAMESPACE, 0), (THREAD_FLAGS, 0)),
    Row("unshare", errno.EPERM, (NEW_USER_NAMESPACE, 0), (0, 0)),
    Row("unshare", errno.EPERM, (NEW_MOUNT_NAMESPACE, 0), (0, 0)),
    *[
        Row(name, errno.EPERM, (1, 0), (0, 0))
        for name in ("prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr")
    ],
    Row("setpriority", errno.EPERM, (PRIO_USER, 0), (PRIO_PROCESS, 0)),
    Row("setpriority", errno.EPERM, (PRIO_PROCESS, 1), (PRIO_PROCESS, 0)),
    *[
        Row("ptrace", errno.EPERM, (request, 0, 0, PTRACE_O_TRACEEXIT | 1), (request, 0, 0, PTRACE_O_EXITKILL))
        for request in (PTRACE_SEIZE, PTRACE_SETOPTIONS, PTRACE_OLDSETOPTIONS)
    ],
]
IDS = [f"{row.call}-{row.refused[0]:x}-{row.refused[1]:x}" for row in ROWS]


def test_every_row_of_the_table_is_tried_here():
    source = helper_path().with_name("syscall_filter.c").read_text()
    table = source[source.index("rules[] = {") : source.index("\n};", source.index("rules[] = {"))]
    calls = re.findall(r"\{SYS_(\w+), E(\w+),", table)
    assert sorted(calls) == sorted((row.call, errno.errorcode[row.error].removeprefix("E")) for row in ROWS)


# In a box

TRY = """
import ctypes, json, sys
libc = ctypes.CDLL(None, use_errno=True)
answers = []
for number, *arguments in json.loads(sys.argv[1]):
    result = libc.syscall(*map(ctypes.c_long, [number, *arguments]))
    answers.append(ctypes.get_errno() if result < 0 else 0)
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def in_a_box(need_bubblewrap):
    """Errors of calls whose process is the first of a box, with the filter and without."""
    need_bubblewrap()

    def errors(calls, *, restricted):
        restrict = ["/slop/box", "restrict", "0", "0", "--"] if restricted else []
        argv = [
            bwrap_binary.bwrap(), "--unshare-user", "--unshare-pid", "--as-pid-1", "--die-with-parent",
            *system_arguments(), "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
            "--ro-bind", str(helper_path()), "/slop/box", "--ro-bind", sys.base_prefix, sys.base_prefix, "--",
            *restrict, os.path.realpath(sys.executable), "-c", TRY, json.dumps(calls),
        ]  # fmt: skip
        done = subprocess.run(argv, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return errors


def test_every_row_is_in_force_in_a_box(in_a_box):
    calls = [[NATIVE[row.call], *row.refused, 0, 0, 0] for row in ROWS]
    assert in_a_box(calls, restricted=True) == [row.error for row in ROWS]


def test_without_the_filter_the_first_process_could_be_changed(in_a_box):
    """So that the test above says something; what a kernel says of the other calls depends on how it was built."""
    rows = [row for row in ROWS if row.error == errno.EPERM and row.call not in ("clone", "unshare")]
    calls = [[NATIVE[row.call], *row.refused, 0, 0, 0] for row in rows]
    assert errno.EPERM not in in_a_box(calls, restricted=False)
    assert len(rows) == 10


# Instruction by instruction


class Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32))


@pytest.fixture(scope="module")
def program():
    printed = subprocess.run([helper_path(), "show-filter"], capture_output=True, check=True, text=True).stdout
    code = bytes.fromhex(printed)
    return list((Instruction * (len(code) // ctypes.sizeof(Instruction))).from_buffer_copy(code))


LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOWED, REFUSED = 0x7FFF0000, 0x00050000


def run(program, call, arguments=(0, 0), architecture=NATIVE_ARCHITECTURE):
    """The error that a call gets, None when it is allowed: what the kernel does with the program."""
    data = {0: call, 4: architecture}
    for number, value in enumerate(arguments):
        data[16 + 8 * number] = value & 0xFFFFFFFF
    at, accumulator = 0, 0
    while True:
        step = program[at]
        at += 1
        if step.code == LOAD:
            accumulator = data[step.k]
        elif step.code == RETURN:
            assert step.k == ALLOWED or step.k & 0xFFFF0000 == REFUSED
            return None if step.k == ALLOWED else step.k & 0xFFFF
        else:
            tests = {EQUAL: accumulator == step.k, AT_LEAST: accumulator >= step.k, ANY_BIT: accumulator & step.k != 0}
            at += step.jt if tests[step.code] else step.jf


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_row_refuses_its_calls_and_no_others(program, row):
    assert run(program, NATIVE[row.call], row.refused) == row.error
    if row.allowed is not None:
        assert run(program, NATIVE[row.call], row.allowed) is None


def test_a_debugger_may_write_the_value_of_a_refused_option(program):
    assert run(program, NATIVE["ptrace"], (PTRACE_POKEDATA, 0, 0, PTRACE_O_TRACEEXIT)) is None


def test_calls_that_are_in_no_row_are_allowed(program):
    others = set(range(600)) - set(NATIVE.values())
    for arguments in ((0, 0), (1, 1), (socket.AF_VSOCK, PRIO_USER), (NEW_USER_NAMESPACE, NEW_USER_NAMESPACE)):
        assert {number for number in others if run(program, number, arguments) is not None} == set()


@pytest.mark.parametrize("number", [0, 41, 250, 10_000])
def test_no_call_of_another_architecture_is_allowed(program, number):
    for architecture in (0x40000003, 0x40000028, *ARCHITECTURES.values(), 0):
        if architecture != NATIVE_ARCHITECTURE:
            assert run(program, number, architecture=architecture) == errno.ENOSYS


@pytest.mark.parametrize("number", [OTHER_NUMBERING, OTHER_NUMBERING + 41, 2**32 - 1])
def test_no_call_by_the_other_numbering_is_allowed(program, number):
    assert run(program, number) == errno.ENOSYS
