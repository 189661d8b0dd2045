"""Boxes that `slopbox box` makes inside of a box of bwrap: what bwrap makes of the same words, with every wall."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from slop_code.execution.bubblewrap.box_arguments import ALL_PROC, HIDE_PID_1, IDENTITY, NEW_ROOT, PROC
from slop_code.execution.bubblewrap.bwrap_binary import CONTAINED, NAMESPACES, OUTER_NAMESPACES, bwrap
from slop_code.execution.bubblewrap.system_mounts import (
    ETC_FILES,
    command_arguments,
    further_arguments,
    system_arguments,
)

pytestmark = pytest.mark.e2e

INTERPRETER = os.path.realpath(sys.executable)
FAILED = 125

SUBJECT = [
    *IDENTITY, *NAMESPACES, *CONTAINED, "--as-pid-1", "--cap-drop", "ALL", "--disable-userns",
    *system_arguments(), *PROC, *HIDE_PID_1, "--dev", "/dev", "--size", "1048576", "--tmpfs", "/dev/shm",
    "--remount-ro", "/dev", "--bind", "/box/writable", "/tmp", "--ro-bind", "/box/writable", "/seen/deep",
    "--ro-bind", "/box/tree", "/seen/tree",
    "--ro-bind-try", "/missing", "/missing", "--remount-ro", "/", "--chdir", "/tmp", "--setenv", "ONLY", "this",
]  # fmt: skip
JUDGE = [
    *IDENTITY, *NAMESPACES, *CONTAINED, "--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETPCAP",
    *system_arguments(), *command_arguments("/box/commands"), "--proc", "/proc", "--dev-bind", "/dev", "/dev",
    "--bind", "/box/writable", "/tmp", "--tmpfs", "/home/agent", "--overlay-src", "/box/writable",
    "--tmp-overlay", "/layered", "--ro-bind", "/box/writable/file", "/seen/file",
    "--ro-bind", "/box/tree", "/seen/tree", "--remount-ro", "/", "--chdir", "/tmp",
]  # fmt: skip
OUTER = [
    "--unshare-user", "--uid", "0", "--gid", "0", "--unshare-net", *OUTER_NAMESPACES, *CONTAINED, "--cap-add", "ALL",
    *system_arguments(), "--proc", "/proc", "--bind", ALL_PROC, ALL_PROC, "--dev", "/dev", "--dir", "/tmp",
    "--symlink", "/usr/bin/true", "/box/commands/extra",
]  # fmt: skip

STATE = r"""
import ctypes, json, os, socket, stat
def text(path):
    with open(path) as file:
        return file.read()
def node(path):
    info = os.lstat(path)
    return os.readlink(path) if stat.S_ISLNK(info.st_mode) else [stat.S_IFMT(info.st_mode), info.st_rdev]
status = dict(line.split(":", 1) for line in text("/proc/self/status").splitlines())
mounts = []
for line in text("/proc/self/mountinfo").splitlines():
    words = line.split()
    flags = sorted({*words[5].split(",")} & {"ro", "nosuid", "nodev", "noexec"})
    mounts.append([words[4], words[words.index("-") + 1], flags])
names = ("net", "ipc", "uts", "pid", "cgroup", "mnt", "user")
written = ("/", "/usr", "/tmp", "/dev", "/dev/shm", "/proc/sys/kernel/hostname", "/proc/irq", "/seen/deep",
           "/seen/tree/below", "/layered")
with socket.socket() as server, socket.socket() as client:
    server.bind(("127.0.0.1", 0))
    server.listen()
    client.connect(server.getsockname())
fields = ("Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "SigBlk", "SigIgn")
print(json.dumps({
    "mounts": mounts,
    "namespaces": {name: os.readlink(f"/proc/self/ns/{name}") for name in names},
    "process": {name: status[name].strip() for name in fields},
    "users": [text("/proc/self/" + name).split() for name in ("uid_map", "gid_map", "setgroups")],
    "place": [dict(os.environ), os.getcwd(), os.uname().nodename, os.getpid(), os.getsid(0), os.umask(0)],
    "descriptors": sorted(os.listdir("/proc/self/fd")),
    "first": os.listdir("/proc/1") == [],
    "devices": {name: node(f"/dev/{name}") for name in sorted(os.listdir("/dev"))},
    "folders": {name: sorted(os.listdir(name)) for name in ("/", "/tmp", "/etc", "/dev/pts")},
    "writable": [os.access(path, os.W_OK) for path in written],
    "interfaces": [name for _, name in socket.if_nameindex()],
    "groups": text("/proc/self/cgroup").split(),
    "user_namespace": ctypes.CDLL(None).unshare(0x10000000),
}))
"""


@pytest.fixture
def inside(need_bubblewrap, helper, tmp_path):
    """`inside(argv)`: runs a command in a box of bwrap with all capabilities, as the outer box is."""
    need_bubblewrap()
    (tmp_path / "file").write_text("content")
    package = Path(bwrap()).parent.parent
    files = [Path(helper), ETC_FILES, package, package.with_name(f"{package.name}.libs")]
    outside = [
        bwrap(), "--unshare-user", "--uid", "0", "--gid", "0", *NAMESPACES, *CONTAINED, "--cap-add", "ALL",
        *system_arguments(), *further_arguments(path for path in files if path.exists()),
        "--proc", "/proc", "--bind", "/proc", ALL_PROC, "--dev", "/dev", "--dir", "/tmp", "--dir", NEW_ROOT,
        "--bind", str(tmp_path), "/box/writable", "--bind", str(tmp_path), "/box/tree/below",
        "--symlink", "/usr/bin/true", "/box/commands/extra", "--",
    ]  # fmt: skip
    return lambda argv: subprocess.run([*outside, *argv], capture_output=True, text=True, timeout=600, umask=0o27)


def test_a_file_that_the_host_replaced_meanwhile_is_there_with_its_old_content(inside, helper, tmp_path):
    """As an installation replaces ld.so.cache while a box exists, in which others are made."""
    for name, content in {"cache": "old", "new": "new", "empty": ""}.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "cache").chmod(0o755)
    replace = "cd /box/writable; mount --bind cache empty && mv new cache"
    look = "cat /seen/file; ls -l /seen/file | cut -c1-10; echo more > /seen/file || echo refused"
    words = [*IDENTITY, *NAMESPACES, *CONTAINED, "--cap-drop", "ALL", *system_arguments()]
    words += ["--ro-bind", "/box/writable/empty", "/seen/file", "--remount-ro", "/", "--", "/bin/sh", "-c", look]
    done = inside(["/bin/sh", "-c", f'{replace}; exec "$@"', "sh", helper, "box", *words])
    assert (tmp_path / "cache").read_text() == "new"
    assert done.stdout == "old-r-xr-xr-x\nrefused\n", done.stderr


@pytest.fixture
def makers(helper):
    return {"bwrap": [bwrap()], "helper": [helper, "box"]}


@pytest.mark.parametrize("words", [SUBJECT, JUDGE, OUTER], ids=["subject", "judge", "outer"])
def test_a_box_is_what_bwrap_makes_of_the_same_words(inside, makers, words):
    seen, mounts, shared = {}, {}, {}
    for name, maker in makers.items():
        # In a shell, since nobody sees the first process of the subject's box, itself included.
        state = [*maker, *words, "--", "/bin/sh", "-c", '"$@"; exit $?', "sh", INTERPRETER, "-c", STATE]
        done = inside(["/bin/sh", "-c", 'readlink /proc/self/ns/*; "$@"; exit $?', "sh", *state])
        assert (done.returncode, done.stderr) == (0, "")
        *around, last = done.stdout.splitlines()
        seen[name] = json.loads(last)
        mounts[name] = seen[name].pop("mounts")
        shared[name] = {kind for kind, space in seen[name].pop("namespaces").items() if space in around}
        if "net" in shared[name]:
            seen[name].pop("interfaces")  # of the host, where others come and go
    assert (seen["helper"], shared["helper"]) == (seen["bwrap"], shared["bwrap"])
    assert [mount[:2] for mount in mounts["helper"]] == [mount[:2] for mount in mounts["bwrap"]]
    for (path, _, ours), (_, _, theirs) in zip(mounts["helper"], mounts["bwrap"], strict=True):
        assert {*theirs} <= {*ours}, path  # bwrap's overlays have no flags


@pytest.mark.parametrize("maker", ["bwrap", "helper"])
def test_a_box_ends_with_its_command_and_nothing_stays(inside, makers, maker):
    for command, expected in (("exit 7", 7), ("kill -9 $$", 137), ("sleep 1000 & exit 3", 3)):
        assert inside([*makers[maker], *JUDGE, "--", "/bin/sh", "-c", command]).returncode == expected


MISTAKES = {
    "a link in the new root": (["--symlink", "/box/writable", "/led", "--dir", "/led/out"], "cannot be mounted on"),
    "a folder that is missing": (["--ro-bind", "/missing", "/here"], "no /missing"),
    "an option of bwrap that is not known": (["--share-net"], "--share-net does not fit here"),
    "a capability that is not known": (["--cap-add", "CAP_CHOWN"], "unknown capability CAP_CHOWN"),
    "a folder to start in that is missing": (["--chdir", "/missing"], "no folder /missing"),
}


@pytest.mark.parametrize("words", MISTAKES)
def test_a_box_that_cannot_be_made_as_asked_runs_nothing(inside, helper, tmp_path, words):
    wrong, reason = MISTAKES[words]
    done = inside(
        [helper, "box", *IDENTITY, *NAMESPACES, *system_arguments(), *wrong, "--", "/bin/sh", "-c", "echo ran"]
    )
    assert (done.returncode, done.stdout) == (FAILED, "")
    assert reason in done.stderr
    assert sorted(os.listdir(tmp_path)) == ["file"]
