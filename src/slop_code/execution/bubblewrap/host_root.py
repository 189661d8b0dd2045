"""Root of the host, as opposed to root of a user namespace, such as that of a rootless container."""

from __future__ import annotations

import os
from pathlib import Path

UID_MAP = Path("/proc/self/uid_map")


def is_host_root() -> bool:
    """An identical mapping counts as the host's root: a process does not see in which namespaces its own one lies."""
    return os.geteuid() == 0 and host_user() == 0


def host_user() -> int | None:
    """This user outside of its user namespace; None where that one does not map the user."""
    try:
        return outside_id(os.geteuid(), UID_MAP.read_text())
    except FileNotFoundError:  # a kernel without user namespaces
        return os.geteuid()


def outside_id(user: int, uid_map: str) -> int | None:
    """`uid_map`: the content of `/proc/PID/uid_map`."""
    for line in uid_map.splitlines():
        inside, outside, count = map(int, line.split())
        if inside <= user < inside + count:
            return outside + user - inside
    return None
