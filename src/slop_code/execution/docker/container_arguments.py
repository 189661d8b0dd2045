"""The arguments of every container: pure, so that what each may do is read here and tested without a daemon."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from slop_code.errors import InfrastructureError
from slop_code.execution.docker.engine import ENTRY, OWNER
from slop_code.execution.docker.extra_mounts import Mount, is_ours
from slop_code.execution.fixed_limits import FEWEST_INODES, FILE_SIZE, SETUP_MEMORY, SETUP_PROCESSES
from slop_code.execution.sandbox import REPORTS_DIR, TESTS_DIR

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from slop_code.execution.environment import Limits

HOME = "/slop/home"
"""Not a folder an image may have: a runtime gives a mount the modes of what it covers."""

SUPPORT = "/slop/support"
BOX = f"{SUPPORT}/box"
GATE = "/slop/gate"
JUDGE = "/slop/judge"
CALL = "/slop/call"
SHOWN = "/slop/shown"
SOURCE = "/slop/source"
TOOLS = "/slop/tools"
NET = "/slop/net"

SUBJECT_ENV = "/slop-subject"
"""Beside our own folder, which is covered while set-up runs and so cannot be changed by it."""

UV_CACHE = f"{JUDGE}/uv-cache"

OPENING = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETPCAP", "SETUID", "SYS_ADMIN")
"""What process 1 of the judge's container needs to unpack, mount and change its user; pytest has none of it."""

INSTALLING = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETFCAP", "SETGID", "SETUID")
"""What package managers need."""

PLAIN = ("--init=false", "--no-healthcheck", "--log-driver", "none", "--workdir", "/")
"""Process 1 is ours, nothing of the image's runs beside it, and nothing starts in a folder of the submission's."""

ADMIT_S = 60
PAGE = os.sysconf("SC_PAGE_SIZE")
BOX_PROCESSES = 8
"""Of the subject's container itself, beside those of the subject."""


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
class Names:
    """Of one evaluation's containers and volumes."""

    token: str = field(default_factory=lambda: secrets.token_hex(6))

    def of(self, what: str) -> str:
        return f"slop-code-{self.token}-{what}"

    def declared(self, paths: Iterable[str], taken: Iterable[str], box: str) -> list[Mount]:
        """What an image declares as volumes: there as the image has it, and as little to be written to as the rest."""
        others = sorted({os.path.normpath(path) for path in paths} - {"/tmp", *taken})
        for path in others:
            if is_ours(path):
                raise InfrastructureError(f"the image declares {path} as a volume: no place for one; use another image")
        return [Mount(self.of(f"{box}-volume{number}"), path, filled=True) for number, path in enumerate(others)]

    @property
    def shared(self) -> list[str]:
        return [self.of(what) for what in ("workspace", "tmp", "shown", "gate")]


def labels(owner: str, entry: str | None = None) -> list[str]:
    return ["--label", f"{OWNER}={owner}", *(["--label", f"{ENTRY}={entry}"] if entry else [])]


def tmpfs(path: str, options: str) -> list[str]:
    return ["--tmpfs", f"{path}:exec,{options}"]


def capabilities(names: Iterable[str] = ()) -> list[str]:
    return ["--cap-drop", "ALL", *[word for name in names for word in ("--cap-add", name)]]


def all_mounts(mounts: Iterable[Mount]) -> list[str]:
    return [word for mount in mounts for word in mount.words]


def unpack_steps(trees: Mapping[str, str], user: User) -> list[str]:
    """Steps of process 1 that unpack the archive on its standard input: the folder of each tree in it."""
    return [*[word for tree in trees.items() for word in ("--tree", *tree)], "--unpack", *user.words]


def volume_arguments(name: str, owner: str, options: str) -> list[str]:
    """A volume in memory, so that its size has an end."""
    kind = ["--opt", "type=tmpfs", "--opt", "device=tmpfs", "--opt", f"o={options}"]
    return ["volume", "create", *labels(owner), *kind, name]


def judge_arguments(
    names: Names,
    *,
    owner: str,
    image: str,
    user: User,
    workspace: str,
    network: str,
    mounts: Sequence[Mount],
    source: Mount | None,
    collecting: bool,
    interactive: bool = False,
    environment: Mapping[str, str],
    argv: Sequence[str],
) -> list[str]:
    """Where tests are collected there is no subject, and what that compiles comes back."""
    shared = zip(names.shared, (workspace, "/tmp", SHOWN, GATE), strict=True)
    every = [*[Mount(name, target, readonly=False) for name, target in shared], *mounts, *([source] if source else [])]
    tests, reports = f"{workspace}/{TESTS_DIR}", f"{workspace}/{REPORTS_DIR}"
    own = [f"{JUDGE}/reports", f"{JUDGE}/over/up", f"{CALL}/done", SHOWN]
    written = [mount.target for mount in mounts if not mount.readonly]
    given = ("reports", "tests", "plugin") if collecting else ("reports",)
    return [
        "run", "--interactive", "--sig-proxy=false", "--name", names.of("judge"), *labels(owner),
        "--network", network, *PLAIN, "--read-only", "--user", "0:0",
        *capabilities(OPENING), "--security-opt", "no-new-privileges",
        # Process 1 mounts, which these would forbid; what it starts may do nothing of the kind.
        "--security-opt", "apparmor=unconfined", "--security-opt", "label=disable",
        *tmpfs(JUDGE, "mode=755"), *tmpfs(CALL, "mode=755"), *tmpfs("/slop/tmp", "mode=1777"),
        *tmpfs(HOME, "mode=1777"),
        *all_mounts(every), "--entrypoint", BOX, image,
        "pair", *unpack_steps({"workspace": workspace, "judge": JUDGE, "shown": SHOWN, "call": CALL}, user),
        *(["--copy", SOURCE, workspace, *user.words] if source else []),
        "--mkdir", tests, "755", "--bind", f"{JUDGE}/tests", tests, "rw" if collecting else "ro",
        "--mkdir", f"{JUDGE}/over/work", "755", "--mkdir", UV_CACHE, "755",
        *[word for path in own for word in ("--mkdir", path, "755", "--own", path, *user.words)],
        "--mkdir", reports, "755", "--bind", f"{JUDGE}/reports", reports, "rw",
        "--overlay", TOOLS, f"{JUDGE}/over/up", f"{JUDGE}/over/work", UV_CACHE,
        "--listen", f"{GATE}/socket", "--ready", *(["--talk"] if interactive else []),
        *([] if collecting else ["--admit", str(ADMIT_S)]),
        *[word for name in given for word in ("--give", name, f"{JUDGE}/{name}")],
        "--judge", BOX, "seal", str(FILE_SIZE), "0", "--user", *user.words, "--chdir", workspace, "--clearenv",
        *[word for name, value in environment.items() for word in ("--setenv", name, value)],
        workspace, "/tmp", *written, "--", *argv,
    ]  # fmt: skip


def subject_arguments(
    names: Names,
    *,
    owner: str,
    image: str,
    user: User,
    workspace: str,
    mounts: Sequence[Mount],
    limits: Limits,
) -> list[str]:
    """Memory in all includes what it writes: files of the workspace and of /tmp are in memory too."""
    targets = (workspace, "/tmp", f"{workspace}/{TESTS_DIR}", GATE)
    shared = zip(names.shared, targets, (False, False, True, True), strict=True)
    every = [*[Mount(name, target, readonly) for name, target, readonly in shared], *mounts]
    memory = str(limits.memory + 3 * limits.disk)
    return [
        "run", "--detach", "--name", names.of("subject"), *labels(owner),
        "--network", f"container:{names.of('judge')}", *PLAIN, "--read-only",
        "--user", str(user), *capabilities(), "--security-opt", "no-new-privileges",
        "--memory", memory, "--memory-swap", memory, "--pids-limit", str(limits.processes + BOX_PROCESSES),
        "--cpus", f"{cpus(limits):g}", "--shm-size", str(min(limits.disk, limits.memory)),
        *tmpfs(HOME, f"mode=1777,size={limits.disk}"),
        *tmpfs(f"{workspace}/{REPORTS_DIR}", "ro,mode=555,size=4096"),
        *all_mounts(every), "--entrypoint", BOX, image,
        "serve", f"{GATE}/socket", str(limits.memory), str(limits.processes), str(limits.disk), "0",
    ]  # fmt: skip


def cpus(limits: Limits) -> float:
    """More than there are is not taken by an engine, nor less than a hundredth."""
    return max(0.01, min(limits.cpus, os.cpu_count() or 1))


def worker_arguments(
    name: str,
    *,
    owner: str,
    image: str,
    network: str | None,
    mounts: Sequence[Mount],
    steps: Sequence[str],
    covered: bool,
) -> list[str]:
    """A container in which commands are run one after the other, with network and a root that can be written to."""
    return [
        "run", "--interactive", "--sig-proxy=false", "--name", name, *labels(owner),
        *(["--network", network] if network else []), *PLAIN, "--user", "0:0",
        # Without no-new-privileges, as set-up may use sudo; it is root as a rule anyway.
        *capabilities(INSTALLING), "--memory", str(SETUP_MEMORY), "--pids-limit", str(SETUP_PROCESSES),
        *(["--security-opt", "label=disable"] if any(mount.is_folder for mount in mounts) else []),
        *(tmpfs("/slop", "mode=755") if covered else []),
        *tmpfs("/tmp", "mode=1777"), *tmpfs(HOME, "mode=1777"), *tmpfs(NET, "mode=755"),
        *all_mounts(mounts), "--entrypoint", BOX, image, "pair", *steps, "--ready", "--hold",
    ]  # fmt: skip


def exec_arguments(
    name: str, user: User, workdir: str, environment: Mapping[str, str], command: Sequence[str]
) -> list[str]:
    """What the host's environment has is named only: a proxy's password is nothing for a list of processes."""
    same = [key for key, value in environment.items() if os.environ.get(key) == value]
    variables = [
        word for key, value in environment.items() for word in ("--env", key if key in same else f"{key}={value}")
    ]
    return ["exec", "--user", str(user), "--workdir", workdir, *variables, name, *command]


def volume_options(size: int, entries: int = 0, mode: str = "755") -> str:
    """The size counts in pages, as podman takes the word `size` for a quota on its own disk."""
    inodes = max(FEWEST_INODES, size // 4096) + 2 * entries
    return f"mode={mode},nr_blocks={-(-size // PAGE)},nr_inodes={inodes},nosuid,nodev"
