"""Package mirrors and keys of the targets, from the settings of the host's apt."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from private_daemon import UnavailableError, call, note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from private_daemon import Environment

    from machines.targets import Target

MIRROR_VARIABLE = "SLOP_CODE_VM_MIRROR"
KEYRINGS = Path("/usr/share/keyrings")
KEYRING_PACKAGES = {"debian": "debian-archive-keyring", "ubuntu": "ubuntu-archive-keyring"}
KEYRING_SUITE = "trixie"
"""The first suite of Debian that has the keyrings of both distributions."""


def mirror_of(distribution: str, environment: Environment) -> str:
    """The mirror that is named, else one that the host uses, else the folder beside the host's own mirror.

    Public mirrors have `debian` and `ubuntu` side by side.
    """
    if named := environment.get(MIRROR_VARIABLE):
        return named
    query = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    return choose_mirror(distribution, call(query, environment).split())


def choose_mirror(distribution: str, used: Sequence[str]) -> str:
    for uri in used:
        if match := re.fullmatch(r"(.*/)(debian|ubuntu)/?", uri):
            return f"{match[1]}{distribution}"
    raise UnavailableError(f"apt uses no mirror of {distribution}; {MIRROR_VARIABLE} can name one")


def keyring_of(target: Target, folder: Path, environment: Environment) -> Path:
    """The host's keyring, else that of Debian's package, which is checked with Debian's keys."""
    package = KEYRING_PACKAGES[target.distribution]
    if (KEYRINGS / f"{package}.gpg").exists():
        return KEYRINGS / f"{package}.gpg"
    note(f"fetching {package}")
    system = folder / "keyring"
    mirror = mirror_of("debian", {**environment, MIRROR_VARIABLE: ""})
    options = ["--quiet", "--variant=extract", f"--include={package}"]
    call(["mmdebstrap", *options, KEYRING_SUITE, str(system), mirror], environment)
    (keyring,) = system.glob(f"usr/share/keyrings/{package}.gpg")
    return keyring


def as_root_with_tools() -> Environment:
    if os.geteuid():
        raise UnavailableError("only root can make the file systems of machines")
    path = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
    return {**os.environ, "PATH": path, "DEBIAN_FRONTEND": "noninteractive"}
