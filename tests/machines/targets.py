"""The systems that `make vm` knows."""

from __future__ import annotations

import platform
from dataclasses import dataclass

PACKAGES = (
    "apparmor", "ca-certificates", "dbus", "dbus-user-session", "init", "initramfs-tools", "iproute2", "kmod",
    "libpam-systemd", "procps", "python3", "sudo", "udev",
)  # fmt: skip
"""Beside the kernel: systemd with sessions of users, and what a machine has on which people work."""


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
        return (*PACKAGES, self.kernel)

    @property
    def is_native(self) -> bool:
        return self.processor == platform.machine()


TARGETS = {
    "debian12-x86_64": Target("debian", "bookworm", "x86_64", "amd64", "linux-image-cloud-amd64", "3.11"),
    "debian13-x86_64": Target("debian", "trixie", "x86_64", "amd64", "linux-image-cloud-amd64", "3.13"),
    "debian13-aarch64": Target("debian", "trixie", "aarch64", "arm64", "linux-image-cloud-arm64", "3.13"),
    "ubuntu24.04-x86_64": Target("ubuntu", "noble", "x86_64", "amd64", "linux-image-virtual", "3.12"),
}
