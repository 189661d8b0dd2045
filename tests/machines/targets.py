"""The systems that `make vm` knows."""

from __future__ import annotations

import platform
from dataclasses import dataclass

TOOLS = ("iproute2", "kmod", "procps", "python3", "sudo")
SESSIONS = ("apparmor", "ca-certificates", "dbus", "dbus-user-session", "init", "libpam-systemd", "udev")
"""systemd with sessions of users, and what a machine has on which people work."""

DISKS = {"debian": "nvme", "ubuntu": "virtio"}
"""A bus whose driver is in the distribution's kernel itself, so that it needs no initial file system."""


@dataclass(frozen=True, slots=True)
class Target:
    distribution: str
    suite: str
    processor: str
    architecture: str
    """The processor as Debian calls it."""

    kernel: str
    """Package."""

    python: str

    @property
    def packages(self) -> tuple[str, ...]:
        return (*TOOLS, *(SESSIONS if self.is_native else ()), self.kernel)

    @property
    def disk(self) -> str:
        return DISKS[self.distribution]

    @property
    def is_native(self) -> bool:
        """Maintainer scripts of packages can run on the host. Otherwise they are only unpacked: there is no systemd."""
        return self.processor == platform.machine()


TARGETS = {
    "debian12-x86_64": Target("debian", "bookworm", "x86_64", "amd64", "linux-image-cloud-amd64", "3.11"),
    "debian13-x86_64": Target("debian", "trixie", "x86_64", "amd64", "linux-image-cloud-amd64", "3.13"),
    "debian13-aarch64": Target("debian", "trixie", "aarch64", "arm64", "linux-image-cloud-arm64", "3.13"),
    "ubuntu24.04-x86_64": Target("ubuntu", "noble", "x86_64", "amd64", "linux-image-virtual", "3.12"),
}
