"""The engine's arguments for every container: what each container sees, may write to and may do."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from slop_code.errors import ConfigError, InfrastructureError
from slop_code.execution.docker.extra_mounts import Mount, is_reserved
from slop_code.execution.docker.owners import ENTRY, OWNER
from slop_code.execution.environment import JUDGE_FILE_SIZE, MIN_INODES, SETUP_MEMORY, SETUP_PROCESSES
from slop_code.execution.helper import LAUNCHER
from slop_code.execution.sandbox import REPORTS_DIR, TESTS_DIR

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from slop_code.execution.environment import Limits
    from slop_code.execution.sandbox import JudgeJob

HOME = "/slop/home"
"""Not a folder that images have: a runtime gives a mount the mode of the folder that it covers."""

SUPPORT = "/slop/support"  # volume with the helper and uv, read-only in every container
BOX = f"{SUPPORT}/box"  # the helper
GATE = "/slop/gate"  # volume with the socket that launchers connect to; the subject cannot replace the socket
JUDGE = "/slop/judge"  # the judge's tests, plugin, reports and uv's cache; the subject's container has nothing of it
CALL = "/slop/call"  # the launcher's settings, and a marker for each file handed over; only in the judge's container
SHOWN = "/slop/shown"  # volume with the part of the tests that the subject sees, at the path of the tests, read-only
SOURCE = "/slop/source"  # the submission, read-only, from which the workspace is copied
TOOLS = "/slop/tools"  # volume with the test tools, read-only: the lower layer of uv's cache
NET = "/slop/net"  # certificates of the host, for containers with network

SUBJECT_ENV = "/slop-subject"
"""Not in /slop, which is covered while set-up runs, so that set-up cannot change it."""

UV_CACHE = f"{JUDGE}/uv-cache"

JUDGE_INIT_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETPCAP", "SETUID", "SYS_ADMIN")
"""Process 1 of the judge's container unpacks, mounts and changes its user; pytest has none of these."""

RELAYED_SPAWNER_CAPABILITIES = ("KILL", "SETGID", "SETPCAP", "SETUID", "SYS_PTRACE")
"""In a kernel of its own the spawner is root, so that no call can end it; calls have no capability."""

SETUP_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETFCAP", "SETGID", "SETUID")
"""Capabilities that package managers need."""

COMMON = ("--init=false", "--no-healthcheck", "--log-driver", "none", "--workdir", "/")
"""Process 1 is the helper, no health check of the image runs, and no process starts in the submission's folder."""

RELAY_PORT = "29573"
"""Of the loopback network that both containers share, below the ports that a kernel chooses itself. It is open until
the subject's container has connected, before anything of the submission runs."""

HOST_NETWORK = (
    "docker.network: host cannot be the network of the tests where docker.runtime has a kernel of its own: calls go "
    "through the loopback network, which would be that of every program of the host; leave one of the two out"
)
ADMIT_S = 60
PAGE = os.sysconf("SC_PAGE_SIZE")
BOX_PROCESSES = 8
"""Processes of the subject's container itself, in addition to those of the subject."""

LIMITS = ("memory", "processes", "cpus")
"""Limits that an engine may have the kernel enforce for a container."""

RELAYED_MEMORY = 4
"""Times the limit: what processes can take before `slopbox serve` looks again, and the memory of their kernel."""

RELAYED_PROCESSES = 8192
"""The same where the runtime is a program with a kernel of its own, which has several threads of the host for each
process of the subject. gVisor ends if it gets no more; `slopbox serve` alone enforces the limit."""


@dataclass(frozen=True, slots=True)
class User:
    uid: int
    gid: int

    def __str__(self) -> str:
        return f"{self.uid}:{self.gid}"

    @property
    def words(self) -> list[str]:
        return [str(self.uid), str(self.gid)]

    @property
    def owner(self) -> tuple[int, int]:
        return self.uid, self.gid


@dataclass(frozen=True, slots=True)
class ContainerNames:
    """Names of an evaluation's containers and volumes."""

    token: str = field(default_factory=lambda: secrets.token_hex(6))

    def of(self, what: str) -> str:
        return f"slop-code-{self.token}-{what}"

    def declared(self, paths: Iterable[str], taken: Iterable[str], box: str) -> list[Mount]:
        """Volumes that an image declares: filled from the image, and read-only as the rest of it."""
        others = sorted({os.path.normpath(path) for path in paths} - {"/tmp", *taken})
        for path in others:
            if is_reserved(path):
                raise InfrastructureError(
                    f"the image declares {path} as a volume: nothing can be mounted there; use another image"
                )
        return [Mount(self.of(f"{box}-volume{number}"), path, filled=True) for number, path in enumerate(others)]

    @property
    def shared(self) -> list[str]:
        return [self.of(what) for what in ("workspace", "tmp", "shown", "gate")]


def labels(owner: str, entry: str | None = None) -> list[str]:
    return ["--label", f"{OWNER}={owner}", *(["--label", f"{ENTRY}={entry}"] if entry else [])]


def tmpfs(path: str, options: str) -> list[str]:
    return ["--tmpfs", f"{path}:exec,{options}"]


def runtime_arguments(runtime: str | None) -> list[str]:
    """Nothing for the engine's default."""
    return ["--runtime", runtime] if runtime else []


def capabilities(names: Iterable[str] = ()) -> list[str]:
    return ["--cap-drop", "ALL", *[word for name in names for word in ("--cap-add", name)]]


def all_mounts(mounts: Iterable[Mount]) -> list[str]:
    return [word for mount in mounts for word in mount.words]


def unpack_steps(trees: Mapping[str, str], user: User) -> list[str]:
    """Steps of process 1 that unpack the archive on its standard input: the folder of each tree in it."""
    return [*[word for tree in trees.items() for word in ("--tree", *tree)], "--unpack", *user.words]


def volume_arguments(name: str, owner: str, options: str) -> list[str]:
    """A volume in memory, whose size is limited."""
    kind = ["--opt", "type=tmpfs", "--opt", "device=tmpfs", "--opt", f"o={options}"]
    return ["volume", "create", *labels(owner), *kind, name]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSpec:
    """Settings that every container has, whatever runs in it."""

    owner: str
    image: str
    mounts: Sequence[Mount]
    network: str | None = None
    runtime: str | None = None
    is_relayed: bool = False
    """The subject's kernel is another one than the judge's, so calls go through the loopback network."""

    enforced: frozenset[str] = frozenset(LIMITS)
    """Those of LIMITS that the engine can enforce. It is not asked for others: some engines fail then."""

    user: User = field(default_factory=lambda: User(0, 0))
    workspace: str = ""


def judge_arguments(names: ContainerNames, container: ContainerSpec, job: JudgeJob, source: Mount | None) -> list[str]:
    """While tests are collected there is no subject, and bytecode is sent back with the reports."""
    if container.is_relayed and container.network == "host":
        raise ConfigError(HOST_NETWORK)
    workspace, user, collecting = container.workspace, container.user, job.collecting
    shared = zip(names.shared, (workspace, "/tmp", SHOWN, GATE), strict=True)
    mounts = [*[Mount(name, target, readonly=False) for name, target in shared], *container.mounts]
    reports = f"{workspace}/{REPORTS_DIR}"
    own = [f"{JUDGE}/reports", f"{JUDGE}/over/up", f"{CALL}/done", f"{CALL}/refused", SHOWN]
    written = [mount.target for mount in container.mounts if not mount.readonly]
    returned = ("reports", "tests", "plugin") if collecting else ("reports",)
    environment = {**job.request.environment, "TMPDIR": "/slop/tmp"}
    return [
        "run", "--interactive", "--sig-proxy=false", "--name", names.of("judge"), *labels(container.owner),
        "--network", container.network or "none", *COMMON, "--read-only", "--user", "0:0",
        *capabilities(JUDGE_INIT_CAPABILITIES), "--security-opt", "no-new-privileges",
        # Process 1 mounts, which these profiles would forbid; the processes that it starts cannot mount.
        "--security-opt", "apparmor=unconfined", "--security-opt", "label=disable",
        *tmpfs(JUDGE, "mode=755"), *tmpfs(CALL, "mode=755"), *tmpfs("/slop/tmp", "mode=1777"),
        *tmpfs(HOME, "mode=1777"),
        *all_mounts([*mounts, *([source] if source else [])]), "--entrypoint", BOX, container.image,
        "init", *unpack_steps({"workspace": workspace, "judge": JUDGE, "shown": SHOWN, "call": CALL}, user),
        *(["--copy", SOURCE, workspace, *user.words] if source else []),
        *mount_tests(workspace, writable=collecting),
        "--command", f"{SUPPORT}/bin/{LAUNCHER}", f"{CALL}/commands",
        "--mkdir", f"{JUDGE}/over/work", "755", "--mkdir", UV_CACHE, "755",
        *[word for path in own for word in ("--mkdir", path, "755", "--chown", path, *user.words)],
        "--mkdir", reports, "755", "--bind", f"{JUDGE}/reports", reports, "rw",
        "--overlay", TOOLS, f"{JUDGE}/over/up", f"{JUDGE}/over/work", UV_CACHE,
        "--listen", f"{GATE}/socket", *(["--relay", RELAY_PORT] if container.is_relayed else []),
        "--ready", *(["--forward-stdin"] if job.request.interactive else []),
        *([] if collecting else ["--admit", str(ADMIT_S)]),
        *[word for name in returned for word in ("--send", name, f"{JUDGE}/{name}")],
        "--judge", BOX, "restrict", str(JUDGE_FILE_SIZE), "0", "--user", *user.words, "--chdir", workspace,
        "--clearenv",
        *[word for name, value in environment.items() for word in ("--setenv", name, value)],
        workspace, "/tmp", *written, "--", *job.request.argv,
    ]  # fmt: skip


def mount_tests(workspace: str, *, writable: bool) -> list[str]:
    """Mount the tests in the workspace of the judge's container, over whatever the submission has there."""
    tests = f"{workspace}/{TESTS_DIR}"
    return ["--mkdir", tests, "755", "--bind", f"{JUDGE}/tests", tests, "rw" if writable else "ro"]


def subject_arguments(names: ContainerNames, container: ContainerSpec, limits: Limits, path: str) -> list[str]:
    """`path` is the PATH in which the submission's interpreter is found."""
    workspace = container.workspace
    targets = (workspace, "/tmp", f"{workspace}/{TESTS_DIR}", GATE)
    shared = zip(names.shared, targets, (False, False, True, True), strict=True)
    mounts = [*[Mount(name, target, readonly) for name, target, readonly in shared], *container.mounts]
    return [
        "run", "--detach", "--name", names.of("subject"), *labels(container.owner),
        *runtime_arguments(container.runtime), "--network", f"container:{names.of('judge')}", *COMMON, "--read-only",
        *_spawner_privileges(container), "--security-opt", "no-new-privileges",
        *limit_arguments(limits, container),
        "--env", f"PATH={path}", *tmpfs(HOME, f"mode=1777,size={limits.disk}"),
        *tmpfs(f"{workspace}/{REPORTS_DIR}", "ro,mode=555,size=4096"),
        *all_mounts(mounts), "--entrypoint", BOX, container.image,
        "serve", *(["--relay", RELAY_PORT, *container.user.words] if container.is_relayed else [f"{GATE}/socket"]),
        str(limits.memory), str(limits.processes), str(limits.disk), "0",
        workspace, "/tmp", HOME,
    ]  # fmt: skip


def _spawner_privileges(container: ContainerSpec) -> list[str]:
    if container.is_relayed:
        return ["--user", "0:0", *capabilities(RELAYED_SPAWNER_CAPABILITIES)]
    return ["--user", str(container.user), *capabilities()]


def limit_arguments(limits: Limits, container: ContainerSpec) -> list[str]:
    """Hard limits of the kernel, above those that `slopbox serve` enforces itself.

    Memory is `memory` plus three times `disk`, since the workspace, /tmp and the home are in memory, too. A subject
    with a kernel of its own has more, as the host's kernel ends the whole box beyond it, and not one process.
    """
    memory = str(limits.memory * (RELAYED_MEMORY if container.is_relayed else 1) + 3 * limits.disk)
    processes = limits.processes + (RELAYED_PROCESSES if container.is_relayed else BOX_PROCESSES)
    hard = {"memory": ["--memory", memory, "--memory-swap", memory], "processes": ["--pids-limit", str(processes)]}
    hard["cpus"] = ["--cpus", f"{cpus(limits):g}"]
    return [*_enforced(hard, container), "--shm-size", str(min(limits.disk, limits.memory))]


def _enforced(words: Mapping[str, Sequence[str]], container: ContainerSpec) -> list[str]:
    return [word for limit, options in words.items() if limit in container.enforced for word in options]


def cpus(limits: Limits) -> float:
    """An engine accepts neither more than there are nor less than a hundredth."""
    return max(0.01, min(limits.cpus, os.cpu_count() or 1))


def command_container_arguments(
    name: str, container: ContainerSpec, steps: Sequence[str], *, covered: bool
) -> list[str]:
    """A container that runs commands in sequence, with network and a writable root.

    `covered`: set-up of a submission sees nothing of /slop.
    """
    hard = {"memory": ["--memory", str(SETUP_MEMORY)], "processes": ["--pids-limit", str(SETUP_PROCESSES)]}
    return [
        "run", "--interactive", "--sig-proxy=false", "--name", name, *labels(container.owner),
        *runtime_arguments(container.runtime),
        *(["--network", container.network] if container.network else []), *COMMON, "--user", "0:0",
        # Without no-new-privileges, as set-up may use sudo; it is root as a rule anyway.
        *capabilities(SETUP_CAPABILITIES), *_enforced(hard, container),
        *(["--security-opt", "label=disable"] if any(mount.is_folder for mount in container.mounts) else []),
        *(tmpfs("/slop", "mode=755") if covered else []),
        *tmpfs("/tmp", "mode=1777"), *tmpfs(HOME, "mode=1777"), *tmpfs(NET, "mode=755"),
        *all_mounts(container.mounts), "--entrypoint", BOX, container.image, "init", *steps, "--ready", "--hold",
    ]  # fmt: skip


def exec_arguments(
    name: str, user: User, workdir: str, environment: Mapping[str, str], command: Sequence[str]
) -> list[str]:
    """Variables of the host are passed by name alone, so that no proxy password shows in the list of processes."""
    same = [key for key, value in environment.items() if os.environ.get(key) == value]
    variables = [
        word for key, value in environment.items() for word in ("--env", key if key in same else f"{key}={value}")
    ]
    return ["exec", "--user", str(user), "--workdir", workdir, *variables, name, *command]


def volume_options(size: int, entries: int = 0, mode: str = "755") -> str:
    """The size is in pages, since podman takes the option `size` for a quota on its own disk."""
    inodes = max(MIN_INODES, size // 4096) + 2 * entries
    return f"mode={mode},nr_blocks={-(-size // PAGE)},nr_inodes={inodes},nosuid,nodev"
