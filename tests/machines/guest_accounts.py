"""Accounts of a machine that call slop-code: root, an ordinary user, that user by `sudo` and in a delegated group."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HOME = Path("/home/tester")
OPEN = Path("/opt/slop-code")
"""The same files in a folder that everyone can read, for root."""

COMMAND_S = 3600
"""A command that takes longer hangs, even in emulation."""

USER_ID = 1000
SETTINGS = HOME / "checks.json"
CGROUPS = Path("/sys/fs/cgroup")
DELEGATED = CGROUPS / "delegated"
"""The group of the user where no systemd makes one."""

LEAF = "slop-code.evaluators"
"""The group to which slop-code moves the processes of a delegated one."""


class CheckError(Exception):
    """The reason why a check failed."""


def settings() -> dict[str, Any]:
    """What the host chose: `short`, `only`, `variables`."""
    loaded: dict[str, Any] = json.loads(SETTINGS.read_text())
    return loaded


def has_systemd() -> bool:
    return Path("/proc/1/comm").read_text().strip() == "systemd"


@dataclass(frozen=True, slots=True)
class Account:
    """Somebody who calls slop-code."""

    name: str
    files: Path
    prefix: tuple[str, ...]
    """Words before a shell command."""

    before: str = ""
    """Words before the command itself."""

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        words = self._words(f"{self.before}{self._variables()} {command}")
        try:
            return subprocess.run(
                words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=COMMAND_S
            )
        except subprocess.TimeoutExpired as error:
            raise CheckError(f"no end after {COMMAND_S} s: {command}\n{error.stdout or b''!r}") from None

    def start(self, command: str) -> subprocess.Popen[bytes]:
        words = self._words(f"{self.before}{self._variables()} {command}")
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def check(self, command: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        """Run it; CheckError if it ends with another status."""
        done = self.run(command)
        if done.returncode != status:
            output = f"{done.stderr[-2000:]}{done.stdout[-6000:]}"
            raise CheckError(f"exit status {done.returncode}, expected {status}\n{output}")
        return done

    def _words(self, command: str) -> list[str]:
        return [*self.prefix, "-c", f"cd {self.files}/slop-code && {command}"]

    def _variables(self) -> str:
        own = {"PATH": f"{self.files}/venv/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        if has_systemd():
            own["XDG_RUNTIME_DIR"] = f"/run/user/{USER_ID}"
        return shlex.join(["env", *(f"{name}={value}" for name, value in {**settings()["variables"], **own}.items())])

    @property
    def python(self) -> str:
        return f"{self.files}/venv/bin/python"

    @property
    def slop_code(self) -> str:
        return f"{self.python} -m slop_code"


AS_USER = ("su", "-", "tester")
ROOT = Account("root", OPEN, ("sh",))
USER = Account("user", HOME, AS_USER)
SUDO = Account("sudo", HOME, AS_USER, "sudo ")


def scope() -> Account:
    """The user in a delegated group: a scope of systemd, else a group made as systemd makes it."""
    if has_systemd():
        variables = f"XDG_RUNTIME_DIR=/run/user/{USER_ID}"
        return Account("scope", HOME, AS_USER, f"{variables} systemd-run --user --scope --quiet -p Delegate=yes ")
    # The first evaluation gives the controllers to the groups below: from then on only the leaf takes processes.
    enter = f'cd {DELEGATED}; [ -d {LEAF} ] && cd {LEAF}; echo $$ > cgroup.procs && exec su - tester "$@"'
    return Account("scope", HOME, ("sh", "-c", enter, "enter"))


def delegate() -> None:
    """Give the user a group, with the mark of systemd."""
    (CGROUPS / "cgroup.subtree_control").write_text("+memory +pids +cpu")
    DELEGATED.mkdir()
    os.setxattr(DELEGATED, "user.delegate", b"1")
    for path in (
        DELEGATED,
        *(DELEGATED / name for name in ("cgroup.procs", "cgroup.subtree_control", "cgroup.threads")),
    ):
        os.chown(path, USER_ID, USER_ID)
