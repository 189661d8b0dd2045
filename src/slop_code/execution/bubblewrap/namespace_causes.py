"""Known causes for which a machine lets nobody make boxes, each with one advice."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.execution.bubblewrap.host_root import is_host_root

if TYPE_CHECKING:
    from collections.abc import Mapping

MIN_KERNEL = (5, 11)
"""The first with overlay mounts in user namespaces."""

SETTINGS = {
    "userns_clone": "kernel/unprivileged_userns_clone",
    "apparmor_restricts": "kernel/apparmor_restrict_unprivileged_userns",
}
NAMESPACE_KINDS = ("user", "mnt", "pid", "net", "ipc", "uts")
"""Namespaces of a box, as the kernel names them in its limits on their number."""

RAISED_LIMIT = 15_000
LIMIT_REACHED = "(ENOSPC)"
"""Part of bwrap's error where one of these limits is reached."""

APPARMOR_SETTING = "kernel.apparmor_restrict_unprivileged_userns"
CONTAINER_FILES = ("/.dockerenv", "/run/.containerenv", "/var/run/secrets/kubernetes.io")
BWRAP_ERROR = "bwrap: "
"""Prefix of bwrap's errors. Its exit status is 1 then, which is also that of a pytest whose tests failed."""

DISTRIBUTION_BWRAP = "/usr/bin/bwrap"
DISTRIBUTION_PROFILE = "/etc/apparmor.d/bwrap-userns-restrict"
"""Profile for the bubblewrap of the distribution; some have it among the examples, where it does nothing."""

PROFILE_FOLDER = "/etc/apparmor.d"
GLOB_CHARACTERS = re.compile(r'([\\"*?\[\]{}^])')
"""Those with a meaning in a quoted path of a profile."""

OTHERWISE = "use an environment of type docker, or isolation: none"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """Settings of a machine; None where it has no such setting."""

    release: str = "6.1.0"
    is_root: bool = False
    max_namespaces: Mapping[str, int] = field(default_factory=dict)
    """Limits on the number of namespaces, by kind."""

    is_exhausted: bool = False
    """The kernel said that one of these limits is reached."""

    userns_clone: int | None = None
    apparmor_restricts: int | None = None
    has_unused_profile: bool = False
    """The distribution's bubblewrap would have a profile, and is not installed; else it was tried and does not work."""

    in_container: bool = False
    has_seccomp_filter: bool = False

    @classmethod
    def read(cls, error: str = "") -> MachineFacts:
        limits = {kind: _setting(f"user/max_{kind}_namespaces") for kind in NAMESPACE_KINDS}
        return cls(
            max_namespaces={kind: limit for kind, limit in limits.items() if limit is not None},
            is_exhausted=LIMIT_REACHED in error,
            release=os.uname().release,
            is_root=is_host_root(),
            has_unused_profile=os.path.exists(DISTRIBUTION_PROFILE) and not os.path.exists(DISTRIBUTION_BWRAP),
            in_container=any(map(os.path.exists, CONTAINER_FILES)) or "container" in os.environ,
            has_seccomp_filter="\nSeccomp:\t2" in Path("/proc/self/status").read_text(),
            **{name: _setting(file) for name, file in SETTINGS.items()},
        )


def _setting(file: str) -> int | None:
    try:
        return int(Path("/proc/sys", file).read_text())
    except (OSError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class NamespaceCause:
    fact: str
    advice: str

    def __str__(self) -> str:
        return f"{self.fact}; {self.advice}"


def known_cause(error: str) -> NamespaceCause | None:
    """The cause of an error of bwrap on this machine; a program that cannot be started says something else."""
    return cause_of(MachineFacts.read(error)) if error.startswith(BWRAP_ERROR) else None


def cause_of(facts: MachineFacts) -> NamespaceCause | None:
    """The one that explains why no box can be made; None if none is known."""
    if "Microsoft" in facts.release:  # WSL 2 has a kernel of its own, which calls itself `microsoft`
        return NamespaceCause("this is WSL 1, which has no namespaces", "convert it with `wsl --set-version <name> 2`")
    if _version(facts.release) < MIN_KERNEL:
        return NamespaceCause(f"Linux {facts.release} is older than 5.11", OTHERWISE)
    if (limit := _limit_cause(facts)) is not None:
        return limit
    if facts.userns_clone == 0 and not facts.is_root:
        setting = "kernel.unprivileged_userns_clone"
        return NamespaceCause(f"{setting} is 0", f"allow user namespaces: `sudo sysctl -w {setting}=1`")
    if facts.in_container:
        filtered = "filters system calls (seccomp) and " if facts.has_seccomp_filter else ""
        fact = f"this is a container, which {filtered}allows no namespaces in it"
        return NamespaceCause(fact, "start it with `--privileged`, or evaluate outside of it")
    if facts.apparmor_restricts == 1 and not facts.is_root:
        return NamespaceCause(
            f"{APPARMOR_SETTING} is 1: AppArmor forbids user namespaces of programs without a profile",
            _apparmor_advice(facts),
        )
    return None


def _limit_cause(facts: MachineFacts) -> NamespaceCause | None:
    """The lowest limit, where it is 0 or the kernel says that one is reached."""
    if not facts.max_namespaces:
        return None
    kind = min(facts.max_namespaces, key=facts.max_namespaces.__getitem__)
    limit, setting = facts.max_namespaces[kind], f"user.max_{kind}_namespaces"
    if limit == 0:
        advice = f"allow {kind} namespaces: `sudo sysctl -w {setting}={RAISED_LIMIT}`"
        return NamespaceCause(f"{setting} is 0", advice)
    if facts.is_exhausted:
        raised = max(RAISED_LIMIT, 2 * limit)
        return NamespaceCause(
            f"the limit on the number of namespaces is reached; the lowest, {setting}, is {limit}",
            f"end processes that have namespaces of their own (`lsns` lists them), or raise it: "
            f"`sudo sysctl -w {setting}={raised}`",
        )
    return None


def _apparmor_advice(facts: MachineFacts) -> str:
    """The narrowest way comes first."""
    ways = [
        "allow them for slop-code's bubblewrap alone: `slop-code doctor --apparmor-profile` prints the profile and the "
        "commands that load it"
    ]
    if facts.has_unused_profile:
        ways.append("else install the distribution's bubblewrap, which has a profile: `sudo apt install bubblewrap`")
    ways.append("else use an environment of type docker")
    ways.append(f"last, allow them to every program of this machine: `sudo sysctl -w {APPARMOR_SETTING}=0`")
    return "; ".join(ways)


def _version(release: str) -> tuple[int, int]:
    match = re.match(r"(\d+)\.(\d+)", release)
    return (int(match[1]), int(match[2])) if match else (0, 0)


@dataclass(frozen=True, slots=True)
class AppArmorProfile:
    """A profile that lets one program make user namespaces, and forbids it nothing."""

    name: str
    """Another one for each program, so that the profile of one virtual environment leaves those of others."""

    text: str

    @property
    def file(self) -> str:
        return f"{PROFILE_FOLDER}/{self.name}"


def apparmor_profile(binary: str) -> AppArmorProfile:
    """AppArmor compares the path without links."""
    path = os.path.realpath(binary)
    name = f"slop-code-bwrap-{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}"
    quoted = GLOB_CHARACTERS.sub(r"\\\1", path)
    text = f"""abi <abi/4.0>,
include <tunables/global>

profile {name} "{quoted}" flags=(unconfined) {{
  userns,
}}
"""
    return AppArmorProfile(name, text)
