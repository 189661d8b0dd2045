"""Arguments of bwrap, and of `slopbox box`, for the boxes: what each box sees, may write to and may do.

An outer box has the private network and the scratch space. In it `slopbox init` mounts what both inner boxes share
and starts the subject's box and the judge's.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.execution.bubblewrap.bwrap_binary import CONTAINED, NAMESPACES, OUTER_NAMESPACES, bwrap
from slop_code.execution.bubblewrap.system_mounts import (
    ETC_FILES,
    command_arguments,
    further_arguments,
    is_within,
    system_arguments,
)
from slop_code.execution.environment import HANDED_SIZE, JUDGE_FILE_SIZE, MAX_WORKSPACE, MIN_INODES
from slop_code.execution.helper import LAUNCHER, helper_path
from slop_code.execution.sandbox import REPORTS_DIR, TESTS_DIR
from slop_code.execution.uv import uv_paths

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slop_code.execution.environment import EnvironmentSpec
    from slop_code.execution.sandbox import JudgeJob, SetupJob

WORKSPACE = "/workspace"
HOME = "/home/agent"
SUBJECT_ENV = "/slop/subject"  # the submission's Python environment: written by set-up, then read-only
TOOLS = "/slop/bin"  # uv and uvx, read-only in every box
GATE = "/slop/gate/socket"  # on which the spawner in the subject's box listens; only in the judge's box
JUDGE = "/slop/judge"  # the plugin and uv's cache; only in the judge's box
IDENTITY = ["--unshare-user", "--uid", "1000", "--gid", "1000"]  # the user of all inner boxes, without privileges
RESOLVER = ("--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf")  # DNS, for boxes with network
KERNEL = [f"/proc/{name}" for name in ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "mtrr", "pressure")]
PROC = ["--proc", "/proc", *[word for path in KERNEL for word in ("--ro-bind-try", path, path)]]
"""Where the host's user is root, the kernel's settings and switches would be writable."""

HIDE_PID_1 = ["--tmpfs", "/proc/1", "--remount-ro", "/proc/1"]
"""Where the host's user is root, the submission could make the kernel kill the box's first process before its own."""

MOUNT_SHOWN_TESTS = ["--ro-bind", "/box/shown", f"{WORKSPACE}/{TESTS_DIR}"]
"""Of the tests folder the subject sees the files that tests handed over, and nothing else."""

ALL_PROC = "/box/allproc"
NEW_ROOT = "/box/root"  # where `slopbox box` makes the root of a box inside of this one
BOX_PROCESSES = 4
"""Kernel limits of processes are that much higher: for the box itself, and so that the watch sees an excess."""


def set_environment(environment: Mapping[str, str]) -> list[str]:
    return [word for name, value in environment.items() for word in ("--setenv", name, value)]


def mount_error(prefix: str) -> str | None:
    """Why an interpreter with this prefix cannot be mounted in a box; None if it can."""
    folder, home = Path(prefix).resolve(), Path(os.path.expanduser("~")).resolve()
    for covered in ("/tmp", WORKSPACE, HOME):
        if is_within(folder, [covered]):
            return f"the interpreter lies in {folder}, where submissions write; use one outside of {covered}"
    if is_within(home, [folder]):
        return f"the interpreter's folder {folder} holds the home folder, which no box may see; use another one"
    return None


def setup_arguments(job: SetupJob, prefix: str = sys.base_prefix) -> list[str]:
    """The set-up box has the host's network, a temporary home, and the workspace as an overlay that is kept.

    `prefix`: that of the submission's interpreter.
    """
    network = [*RESOLVER]
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        if path := job.environment.get(name):
            network += ["--ro-bind-try", path, path]
    uv, uvx = uv_paths()
    return [
        *IDENTITY, *NAMESPACES, *CONTAINED, "--cap-drop", "ALL",
        *system_arguments(job.hidden, [prefix]), *network,
        *PROC, "--dev", "/dev",
        "--bind", str(job.scratch / "tmp"), "/tmp", "--bind", str(job.scratch / "home"), HOME,
        "--bind", str(job.scratch / "env"), SUBJECT_ENV,
        "--ro-bind", str(uv), f"{TOOLS}/uv", "--ro-bind", str(uvx), f"{TOOLS}/uvx",
        "--ro-bind", str(helper_path()), "/slop/box",
        "--overlay-src", str(job.submission),
        "--overlay", str(job.scratch / "layer"), str(job.scratch / "work"), WORKSPACE,
        "--remount-ro", "/", "--chdir", "/", *set_environment(job.environment), "--",
    ]  # fmt: skip


def outer_arguments(
    job: JudgeJob,
    spec: EnvironmentSpec,
    uv_cache: Path,
    groups: Sequence[Path] = (),
    prefix: str = sys.base_prefix,
    judge_descriptor: str | None = None,
) -> list[str]:
    """The whole command. In the outer box `slopbox init` makes the shared mounts, below /box, and both inner boxes.

    `judge_descriptor`: in the box of a template, an inherited descriptor that the judge gets, and nothing else.
    """
    helper, uv_files = str(helper_path()), uv_paths()
    submission = job.submission or job.scratch / "empty"
    entry = job.subject.entry
    lowers = [entry / "layer", submission] if entry and job.subject.has_workspace else [submission]
    sources = [*uv_files, ETC_FILES, *([entry] if entry else [])]
    keep, both = writable_while_collecting(job), (sys.base_prefix, prefix)
    maker = [helper, "box"] if judge_descriptor else [bwrap()]
    arguments = [
        *maker, "--unshare-user", "--uid", "0", "--gid", "0", "--unshare-net", *OUTER_NAMESPACES, *CONTAINED,
        "--cap-add", "ALL",
        *system_arguments(prefixes=both), *RESOLVER, *further_arguments(sources, both),
        # The kernel lets the inner boxes mount /proc only while a /proc without anything mounted over it is visible.
        "--proc", "/proc", "--bind", ALL_PROC if judge_descriptor else "/proc", ALL_PROC, "--dev", "/dev",
        "--symlink", f"{TOOLS}/{LAUNCHER}", f"/box/commands/{LAUNCHER}",
        "--dir", "/tmp", "--dir", "/box/ws", "--dir", "/box/shown", "--dir", "/box/empty", "--dir", NEW_ROOT,
        *mount_tests_outside(job), keep, str(uv_cache), "/box/uvcache",
        "--bind", str(job.request.reports), "/box/reports", "--bind", str(job.scratch / "tmp"), "/box/judgetmp",
        "--ro-bind", str(job.scratch / "conf"), "/box/conf", "--ro-bind", helper, "/box/slopbox",
    ]  # fmt: skip
    for number, lower in enumerate(lowers):
        arguments += ["--ro-bind", str(lower), f"/box/below/{number}"]
    for name, file in job.request.files.items():
        arguments += [keep, str(file), f"/box/judge/{name}"]
    for number, group in enumerate(groups):
        arguments += ["--bind", str(group), f"/box/group/{number}"]
    if spec.network == "full":
        arguments.remove("--unshare-net")
    below = ":".join(f"/box/below/{number}" for number in range(len(lowers)))
    subject = subject_arguments(job, spec, prefix)
    return [
        *arguments, "--", "/box/slopbox", "init", *scratch_steps(spec.limits.disk),
        "--workspace", below, "/box/scratch", "/box/ws", str(MAX_WORKSPACE),
        "--overlay", "/box/below/shown", "/box/handed/up", "/box/handed/work", "/box/shown",
        *[word for number in range(len(groups)) for word in ("--cgroup", f"/box/group/{number}/cgroup.procs")],
        *(["--judge-fd", judge_descriptor] if judge_descriptor else []),
        "--listen", "/box/handed/socket",
        "--subject", str(len(subject)), *subject,
        "--judge", *judge_arguments(job, spec),
    ]  # fmt: skip


def scratch_steps(disk: int) -> list[str]:
    """Folders in memory, so that the disk limit holds: the subject cannot fill more than their size."""
    size = f"mode=755,size={disk},nr_inodes={max(MIN_INODES, disk // 4096)}"
    steps = ["--tmpfs", "/box/scratch", size, "--tmpfs", "/box/share", size, "--mkdir", "/box/share", "1777"]
    steps += ["--tmpfs", "/box/handed", f"mode=755,size={HANDED_SIZE}"]
    folders = [f"/box/scratch/up/{TESTS_DIR}", f"/box/scratch/up/{REPORTS_DIR}", "/box/scratch/work"]
    folders += ["/box/scratch/home", "/box/handed/up", "/box/handed/work", "/box/handed/done", "/box/handed/refused"]
    return [*steps, *[word for folder in folders for word in ("--mkdir", folder, "755")]]


def mount_tests_outside(job: JudgeJob) -> list[str]:
    """Mount the tests, and the part of them that the subject sees, where the outer box can hand them on."""
    tests, shown = str(job.request.tests), str(job.request.shown)
    return [writable_while_collecting(job), tests, "/box/tests", "--ro-bind", shown, "/box/below/shown"]


def mount_tests_for_judge(job: JudgeJob) -> list[str]:
    """Mount the tests in the workspace, over whatever the submission has there."""
    return [writable_while_collecting(job), "/box/tests", f"{WORKSPACE}/{TESTS_DIR}"]


def writable_while_collecting(job: JudgeJob) -> str:
    """Without a subject the judge may write bytecode next to the tests; otherwise it cannot write there."""
    return "--bind" if job.collecting else "--ro-bind"


def subject_arguments(job: JudgeJob, spec: EnvironmentSpec, prefix: str) -> list[str]:
    """The subject's box has the workspace and the files that tests hand over, and nothing that decides the verdict."""
    limits, (uv, uvx) = spec.limits, uv_paths()
    environment = ["--ro-bind", str(job.subject.entry / "env"), SUBJECT_ENV] if job.subject.entry else []
    path = {name: value for name, value in job.request.environment.items() if name == "PATH"}
    return [
        "box", *IDENTITY, *NAMESPACES, *CONTAINED, "--as-pid-1", "--cap-drop", "ALL", "--disable-userns",
        *system_arguments(job.hidden, [prefix]), *(RESOLVER if spec.network == "full" else ()), *environment,
        *PROC, *HIDE_PID_1, "--dev", "/dev", "--size", str(min(limits.disk, limits.memory)), "--tmpfs", "/dev/shm",
        "--remount-ro", "/dev",
        "--bind", "/box/share", "/tmp", "--bind", "/box/scratch/home", HOME, "--bind", "/box/ws", WORKSPACE,
        *MOUNT_SHOWN_TESTS, "--ro-bind", "/box/empty", f"{WORKSPACE}/{REPORTS_DIR}",
        "--ro-bind", str(uv), f"{TOOLS}/uv", "--ro-bind", str(uvx), f"{TOOLS}/uvx",
        "--ro-bind", "/box/slopbox", "/slop/box",
        "--remount-ro", "/", "--chdir", WORKSPACE, *set_environment(path), "--",
        "/slop/box", "serve", "3", str(limits.memory), str(limits.processes), str(limits.disk),
        str(limits.processes + BOX_PROCESSES),
        WORKSPACE, "/tmp",
    ]  # fmt: skip


def judge_arguments(job: JudgeJob, spec: EnvironmentSpec) -> list[str]:
    """The judge's box has tests and reports of its own; it follows no link that the subject planted."""
    keep, (uv, uvx) = writable_while_collecting(job), uv_paths()
    own = [word for name in job.request.files for word in (keep, f"/box/judge/{name}", f"{JUDGE}/{name}")]
    # While tests are collected uv may write what it learns about the interpreter; later it only reads.
    layer = ["--overlay-src", "/box/uvcache", "--tmp-overlay", f"{JUDGE}/uv-cache"]
    uv_cache = ["--bind", "/box/uvcache", f"{JUDGE}/uv-cache"] if job.collecting else layer
    return [
        "box", *IDENTITY, *NAMESPACES, *CONTAINED,
        # `restrict` needs them to forbid links and to empty the bounding set, and drops them.
        "--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETPCAP",
        *system_arguments(), *command_arguments("/box/commands"), *(RESOLVER if spec.network == "full" else ()),
        "--proc", "/proc", "--dev-bind", "/dev", "/dev",
        "--bind", "/box/share", "/tmp", "--tmpfs", HOME, "--bind", "/box/ws", WORKSPACE,
        "--bind", "/box/judgetmp", "/slop/tmp",
        *own, *uv_cache,
        "--ro-bind", str(uv), f"{TOOLS}/uv", "--ro-bind", str(uvx), f"{TOOLS}/uvx",
        *mount_tests_for_judge(job), "--bind", "/box/reports", f"{WORKSPACE}/{REPORTS_DIR}",
        "--ro-bind", "/box/slopbox", f"{TOOLS}/{LAUNCHER}", "--ro-bind", "/box/slopbox", "/slop/box",
        "--ro-bind", "/box/conf", "/slop/call/conf", "--bind", "/box/handed/done", "/slop/call/done",
        "--bind", "/box/handed/refused", "/slop/call/refused",
        "--bind", "/box/shown", "/slop/shown", "--ro-bind", "/box/handed/socket", GATE,
        "--remount-ro", "/", "--chdir", WORKSPACE,
        *set_environment(job.request.environment), "--setenv", "TMPDIR", "/slop/tmp",
        "--", "/slop/box", "restrict", str(JUDGE_FILE_SIZE), "0", WORKSPACE, "/tmp", "--", *job.request.argv,
    ]  # fmt: skip
