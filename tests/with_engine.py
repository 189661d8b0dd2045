"""Run a command with another container engine: `python tests/with_engine.py ENGINE COMMAND…`, as root.

ENGINE is podman (of root), podman-rootless or docker-rootless. The exit status is the command's, or 3 where there is no
such engine. The command runs in mount and process namespaces of its own, with a rootless engine as an ordinary user,
whom only these namespaces know. Its home, the engine's storage and whatever is still running are gone afterwards, or at
the next start if this process was killed. Engines of the machine and of its users are not touched. The command finds in
its environment:

    SLOP_CODE_TEST_ENGINE   a command like docker, which has the image with Python of `with_docker.py`
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from private_daemon import (
    FOLDERS,
    PR_SET_PDEATHSIG,
    UnavailableError,
    call,
    hold,
    install,
    is_left_over,
    last_lines,
    libc,
)
from with_docker import RECIPES, image_tar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from private_daemon import Environment

PREFIX = "slop-engine-"
IMAGE = "slop-code-test:latest"
USER = "slop-code-user"
UID = 64321
ACCOUNT = {
    "passwd": f"{USER}:x:{UID}:{UID}::{{folder}}/home:/bin/sh\n",
    "group": f"{USER}:x:{UID}:\n",
    "subuid": f"{USER}:1000000:65536\n",
    "subgid": f"{USER}:1000000:65536\n",
}
"""Lines for the files of /etc, in the namespace alone."""

PODMAN = """#!/bin/sh
export CONTAINERS_CONF={folder}/containers.conf
cd {folder}/tmp  # where it leaves a file if the kernel kills for memory
exec podman --storage-driver overlay --root {folder}/root --runroot {folder}/run/root --tmpdir {folder}/run/tmp "$@"
"""
PODMAN_SETTINGS = """[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
runtime = "runc"
"""
"""podman's own limits may be higher than those that this process may set. crun refuses mixed control groups."""

DOCKER = """#!/bin/sh
exec docker --host unix://{folder}/run/docker.sock "$@"
"""
DOCKERD = ("dockerd-rootless.sh", "--iptables=false", "--ip6tables=false")
DOCKERD_FOLDERS = "/usr/share/docker.io/contrib:/usr/sbin:/sbin"
"""Debian has the script in a folder of its documentation."""

START_S = 180
UNAVAILABLE = 3
"""Exit status where there is no such engine."""


@dataclass(frozen=True)
class TestEngine:
    script: str
    packages: Mapping[str, str]
    rootless: bool = True
    daemon: Sequence[str] = ()


ROOTLESS = {"newuidmap": "uidmap", "slirp4netns": "slirp4netns"}
ENGINES = {
    "podman": TestEngine(PODMAN, {"podman": "podman", "runc": "runc"}, rootless=False),
    "podman-rootless": TestEngine(PODMAN, {"podman": "podman", "runc": "runc", **ROOTLESS}),
    "docker-rootless": TestEngine(
        DOCKER,
        {"dockerd": "docker.io", "docker": "docker-cli", "rootlesskit": "rootlesskit", "ip": "iproute2", **ROOTLESS},
        daemon=DOCKERD,
    ),
}
NAMESPACES = ("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc")
FORGOTTEN = ("DOCKER_", "PYTEST_", "SCBENCH_", "SLOP_CODE_TEST_", "SUDO_", "XDG_")
"""Variables that name things of the caller's own."""

CONTROL_GROUPS = Path("/sys/fs/cgroup")
PARENT = "libpod_parent"


def main(words: Sequence[str]) -> int:
    if len(words) < 2 or words[0] not in ENGINES:
        print(f"usage: with_engine.py {'|'.join(ENGINES)} COMMAND...", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    path = f"{os.environ['PATH']}:{DOCKERD_FOLDERS}"
    tools = {**os.environ, "PATH": path, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        if os.geteuid():
            raise UnavailableError("only root can make the namespaces and the account")
        for tool, package in ENGINES[words[0]].packages.items():
            install(tool, package, tools)
        name, *options = RECIPES["SLOP_CODE_TEST_IMAGE"]
        tar = image_tar(name, options, tools)
        with fresh_folder() as folder, tar.open("rb") as image, without_new_groups():
            return run_inside(folder, image, words, tools)
    except UnavailableError as missing:
        print(f"no {words[0]}: {missing}", file=sys.stderr)
        return UNAVAILABLE


@contextlib.contextmanager
def fresh_folder() -> Iterator[Path]:
    for folder in FOLDERS.glob(f"{PREFIX}*"):
        if is_left_over(folder):
            shutil.rmtree(folder)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=FOLDERS))
    with hold(folder):
        try:
            yield folder
        finally:
            shutil.rmtree(folder)


@contextlib.contextmanager
def without_new_groups() -> Iterator[None]:
    """Remove the control groups that podman of root leaves, unless they were there before."""
    before = {*CONTROL_GROUPS.glob(f"*/{PARENT}")}
    try:
        yield
    finally:
        for parent in {*CONTROL_GROUPS.glob(f"*/{PARENT}")} - before:
            for folder in sorted((path for path in [parent, *parent.rglob("*")] if path.is_dir()), reverse=True):
                with contextlib.suppress(OSError):
                    folder.rmdir()


def run_inside(folder: Path, image: IO[bytes], words: Sequence[str], tools: Environment) -> int:
    """Start this file again in new namespaces; what is left in them ends with its process 1."""
    engine = ENGINES[words[0]]
    write_files(folder, engine)
    own = {name: value for name, value in tools.items() if not name.startswith(FORGOTTEN)}
    own |= {
        "HOME": f"{folder}/home", "TMPDIR": f"{folder}/tmp", "XDG_RUNTIME_DIR": f"{folder}/run",
        "USER": USER if engine.rootless else "root", "SLOP_CODE_TEST_ENGINE": f"{folder}/engine",
    }  # fmt: skip
    start = [*NAMESPACES, sys.executable, __file__, "--inside", str(folder), str(image.fileno()), *words]
    child = subprocess.Popen(start, env=own, pass_fds=[image.fileno()], preexec_fn=killed_with_parent)
    try:
        return child.wait()
    finally:
        child.kill()
        child.wait()


def killed_with_parent() -> None:
    """unshare blocks the signals that can be blocked."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def write_files(folder: Path, engine: TestEngine) -> None:
    owner = UID if engine.rootless else 0
    folder.chmod(0o755)
    for name in ("home", "tmp", "run", "root"):
        (folder / name).mkdir(mode=0o700)
        os.chown(folder / name, owner, owner)
    (folder / "engine").write_text(engine.script.format(folder=folder))
    (folder / "engine").chmod(0o755)
    (folder / "containers.conf").write_text(PODMAN_SETTINGS)
    (folder / "etc").mkdir()
    for name, line in ACCOUNT.items():
        (folder / "etc" / name).write_text(Path("/etc", name).read_text() + line.format(folder=folder))


def inside(folder: Path, image: int, name: str, command: Sequence[str]) -> int:
    """Process 1 of the namespaces; it waits for orphans, too."""
    engine = ENGINES[name]
    mount("--make-rshared", "/")  # podman expects it
    drop: dict[str, Any] = {}
    if engine.rootless:
        make_account(folder)
        drop = {"user": UID, "group": UID, "extra_groups": []}
    if engine.daemon:
        start_daemon(folder, engine, drop)
    load = [str(folder / "engine"), "import", "-", IMAGE]
    done = subprocess.run(load, cwd=folder, stdin=image, capture_output=True, text=True, **drop)
    if done.returncode:
        raise UnavailableError(f"the image cannot be imported: {last_lines(done.stderr)}")
    child = subprocess.Popen(command, **drop)
    while (ended := os.wait())[0] != child.pid:
        pass
    code = os.waitstatus_to_exitcode(ended[1])
    return code if code >= 0 else 128 - code


def make_account(folder: Path) -> None:
    for name in ACCOUNT:
        mount("--bind", str(folder / "etc" / name), f"/etc/{name}")
    # As on systems with udev: slirp4netns opens it as the user.
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", "/dev/net")
    os.mknod("/dev/net/tun", 0o20666, os.makedev(10, 200))
    os.chmod("/dev/net/tun", 0o666)
    open_folders(folder / "shown", [Path(__file__).parents[1], Path(sys.prefix), Path(sys.base_prefix)])


def open_folders(staging: Path, needed: Sequence[Path]) -> None:
    """Cover folders that others may not enter, such as root's home, by ones that have nothing but what is needed."""
    closed = {path: parent for path in dict.fromkeys(needed) if (parent := closed_parent(path))}
    staged = {path: staging / str(number) for number, path in enumerate(closed)}
    for path, stage in staged.items():
        stage.mkdir(parents=True)
        mount("--bind", str(path), str(stage))
    for parent in {*closed.values()}:
        mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", str(parent))
    for path, stage in staged.items():
        path.mkdir(parents=True, exist_ok=True)
        mount("--bind", str(stage), str(path))


def closed_parent(path: Path) -> Path | None:
    return next((parent for parent in reversed(path.parents) if not parent.stat().st_mode & 0o001), None)


def start_daemon(folder: Path, engine: TestEngine, drop: Mapping[str, Any]) -> None:
    log = folder / "log"
    with log.open("w") as output:
        daemon = subprocess.Popen(
            engine.daemon, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output, **drop
        )
    deadline = time.monotonic() + START_S
    while subprocess.run([folder / "engine", "version"], capture_output=True, **drop).returncode:
        if daemon.poll() is not None or time.monotonic() > deadline:
            raise UnavailableError(f"{engine.daemon[0]} does not start: {last_lines(log.read_text())}")
        time.sleep(0.2)


def mount(*words: str) -> None:
    call(["mount", *words], dict(os.environ))


def main_inside(folder: str, image: str, name: str, *command: str) -> int:
    try:
        return inside(Path(folder), int(image), name, command)
    except UnavailableError as missing:
        print(f"no {name}: {missing}", file=sys.stderr)
        return UNAVAILABLE


if __name__ == "__main__":
    sys.exit(main_inside(*sys.argv[2:]) if sys.argv[1:2] == ["--inside"] else main(sys.argv[1:]))
