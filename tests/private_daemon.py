"""A Docker daemon of its own for one command, which takes root; Debian's `docker.io` is installed if it is missing.

It has the runtime `runsc` as well, where Debian's package of gVisor can be installed.

Its files, processes, mounts, bridge and rules are gone afterwards, or at the next start if this process was killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FOLDERS = Path("/var/tmp")  # on a disk: a /tmp in memory is too small for images
PREFIX = "slop-code-docker-"
PACKAGES = {"dockerd": "docker.io", "docker": "docker-cli", "iptables": "iptables"}
RUNSC_ARGUMENTS = ["--platform=ptrace", "--network=host"]
"""ptrace works on every machine. The network is that of the container, whose loopback judge and subject share."""

APT_FOLDER = "/var/lib/dpkg"
APT_LOCK_S = 600
APPARMOR = Path("/sys/module/apparmor/parameters/enabled")
SIOCSIFFLAGS, SIOCBRADDBR, SIOCBRDELBR = 0x8914, 0x89A0, 0x89A1
PR_SET_PDEATHSIG, MNT_DETACH = 1, 2
Environment = dict[str, str]
libc = ctypes.CDLL(None)


class UnavailableError(Exception):
    """The reason, for people."""


@contextlib.contextmanager
def private_daemon(environment: Environment) -> Iterator[Environment]:
    if os.geteuid():
        raise UnavailableError(f"no daemon answers, and only root can start one ({why_silent(environment)})")
    for tool, package in PACKAGES.items():
        install(tool, package, environment)
    if APPARMOR.exists() and APPARMOR.read_text().startswith("Y"):  # no container starts without its profile
        install("apparmor_parser", "apparmor", environment)
    if why_silent(environment) is None:  # where services are managed, the package starts one
        yield {}
        return
    try:
        install("runsc", "runsc", environment)
    except UnavailableError as missing:
        note(f"no runtime runsc: {missing}")
    note("starting a Docker daemon")
    for folder in FOLDERS.glob(f"{PREFIX}*"):
        if is_left_over(folder):
            remove(folder, environment)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=FOLDERS))
    with hold(folder):
        found = {"DOCKER_HOST": f"unix://{folder}/sock", "DOCKER_CONTEXT": "", "DOCKER_TLS_VERIFY": ""}
        try:
            start(folder, {**environment, **found})
            yield found
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
            with contextlib.suppress(UnavailableError):  # quicker than the daemon's own patience with them
                left = call(["docker", "ps", "--all", "--quiet"], {**environment, **found}, timeout=30).split()
                call(["docker", "rm", "--force", "--volumes", *left], {**environment, **found}, timeout=30)
            remove(folder, environment)


@contextlib.contextmanager
def hold(folder: Path) -> Iterator[None]:
    """The lock says that its maker lives; it gets its name when it is held, so that nobody finds it free too early."""
    with (folder / "new").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (folder / "new").rename(folder / "lock")
        yield


def is_left_over(folder: Path) -> bool:
    try:
        with (folder / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return folder.lstat().st_uid == os.geteuid()  # anyone can make a folder there
    except OSError:
        return False


def start(folder: Path, environment: Environment) -> None:
    bridge = bridge_of(folder)
    settings = {
        "data-root": f"{folder}/data",
        "exec-root": f"{folder}/exec",
        "pidfile": f"{folder}/pid",
        "hosts": [environment["DOCKER_HOST"]],
        "bridge": bridge if add_bridge(bridge) else "none",
        "iptables": False,  # it would take over the host's firewall, and the rules of other daemons
        "ip6tables": False,
    }
    if runsc := shutil.which("runsc", path=environment["PATH"]):
        settings["runtimes"] = {"runsc": {"path": runsc, "runtimeArgs": RUNSC_ARGUMENTS}}
    (folder / "daemon.json").write_text(json.dumps(settings))
    own = {**environment, "TMPDIR": str(folder)}  # containerd writes its stacks there when it is slow to answer
    with (folder / "log").open("w") as log:
        daemon = subprocess.Popen(
            ["dockerd", f"--config-file={folder}/daemon.json"],
            env=own, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True, preexec_fn=die_with_parent,
        )  # fmt: skip
    deadline = time.monotonic() + 180
    while why_silent(environment):
        if daemon.poll() is not None or time.monotonic() > deadline:
            raise UnavailableError(f"dockerd does not start: {last_lines((folder / 'log').read_text())}")
        time.sleep(0.1)
    try:
        let_out(bridge, environment)
    except UnavailableError as error:
        note(f"containers have no network but the host's: {error}")


def bridge_of(folder: Path) -> str:
    return f"slop-{folder.name.removeprefix(PREFIX)}"  # at most 15 characters


def add_bridge(name: str) -> bool:
    with socket.socket() as any_socket, contextlib.suppress(OSError):
        fcntl.ioctl(any_socket, SIOCBRADDBR, name.encode() + b"\0")
        return True
    return False


def let_out(bridge: str, environment: Environment) -> None:
    query = ["docker", "network", "inspect", "bridge", "--format", "{{(index .IPAM.Config 0).Subnet}}"]
    rules = (
        ["-t", "nat", "-A", "POSTROUTING", "-s", call(query, environment), "!", "-o", bridge, "-j", "MASQUERADE"],
        ["-I", "FORWARD", "-i", bridge, "-j", "ACCEPT"],
        ["-I", "FORWARD", "-o", bridge, "-j", "ACCEPT"],
    )
    for rule in rules:
        call(["iptables", "-w", *rule], environment)


def remove(folder: Path, environment: Environment) -> None:
    """End what runs of this daemon, dead or alive, and take away all that it has on this machine."""
    end(folder, signal.SIGTERM, "dockerd", seconds=30)
    end(folder, signal.SIGKILL, "", seconds=10)
    bridge = bridge_of(folder)
    with contextlib.suppress(UnavailableError):
        for table in ("nat", "filter"):
            for rule in call(["iptables", "-w", "-t", table, "-S"], environment).splitlines():
                if bridge in rule:
                    call(["iptables", "-w", "-t", table, "-D", *shlex.split(rule)[1:]], environment)
    with socket.socket() as any_socket, contextlib.suppress(OSError):
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", bridge.encode(), 0))  # down
        fcntl.ioctl(any_socket, SIOCBRDELBR, bridge.encode() + b"\0")
    for point in reversed(mounts_below(folder)):
        libc.umount2(point.encode(), MNT_DETACH)
    if mounts_below(folder):  # never delete through a mount
        note(f"still mounted: {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)


def end(folder: Path, number: signal.Signals, name: str, *, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    sent: set[int] = set()
    while time.monotonic() < deadline:
        alive = {pid for pid, its_name in processes_of(folder) if its_name.startswith(name)}
        if not alive:
            return
        for pid in alive - sent:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        sent |= alive
        time.sleep(0.1)


def processes_of(folder: Path) -> Iterator[tuple[int, str]]:
    """The daemon, its containerd and shims, and what has its root in the folder: the containers."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            name = (entry / "comm").read_text().strip()
            servant = name.startswith(("dockerd", "containerd")) and str(folder) in (entry / "cmdline").read_text()
            if servant or any(point == "/" and str(folder) in line for point, line in mounts(entry)):
                yield int(entry.name), name


def mounts(process: Path) -> list[tuple[str, str]]:
    return [(line.split()[4], line) for line in (process / "mountinfo").read_text().splitlines()]


def mounts_below(folder: Path) -> list[str]:
    return [point for point, _ in mounts(Path("/proc/self")) if Path(point).is_relative_to(folder)]


def die_with_parent() -> None:
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def install(tool: str, packages: str, environment: Environment) -> None:
    if shutil.which(tool, path=environment["PATH"]):
        return
    if os.geteuid() or not shutil.which("apt-get", path=environment["PATH"]):
        raise UnavailableError(f"no {tool} here, and it takes root and apt-get to install it (Debian's {packages})")
    with apt_lock():
        if shutil.which(tool, path=environment["PATH"]):
            return
        note(f"installing {packages}")
        call(["apt-get", "-qq", "update"], environment)
        options = ["-y", "--no-install-recommends", "-o", f"DPkg::Lock::Timeout={APT_LOCK_S}"]
        call(["apt-get", "-qq", "install", *options, *packages.split()], environment)


@contextlib.contextmanager
def apt_lock() -> Iterator[None]:
    """Tests that run side by side install one after the other: `apt-get` waits for another one only if told to, and
    for its update of package lists not even then."""
    folder = os.open(APT_FOLDER, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def why_silent(environment: Environment) -> str | None:
    """None when a daemon answers."""
    try:
        call(["docker", "version", "--format", "{{.Server.Version}}"], environment, timeout=30)
    except UnavailableError as error:
        return str(error)
    return None


def call(command: Sequence[str], environment: Environment, *, timeout: float | None = None) -> str:
    """What it printed; a failure is UnavailableError with the last that it said."""
    try:
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(str(error)) from None
    if done.returncode:
        raise UnavailableError(f"{shlex.join(command)[:200]}: {last_lines(done.stderr or done.stdout)}")
    return done.stdout.strip()


def last_lines(text: str, count: int = 5) -> str:
    return "\n".join(text.strip().splitlines()[-count:])


def note(text: str) -> None:
    print(f"· {text}", file=sys.stderr, flush=True)
