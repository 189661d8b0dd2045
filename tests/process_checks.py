"""Processes that are left of something that was started, killed or has ended."""

from __future__ import annotations

import contextlib
import os
import select
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.execution.bubblewrap.cgroups import PREFIX, ROOT

if TYPE_CHECKING:
    from slop_code.execution.cache import Cache


def processes_in(folder: Path) -> list[int]:
    """Processes that name a path in the folder, or have it mounted in a box of theirs; without this one."""
    needle, pids = f"{folder}/".encode(), []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes()
            apart = os.readlink(entry / "ns/mnt") != os.readlink("/proc/self/ns/mnt")
            boxed = apart and needle in (entry / "mountinfo").read_bytes()
            if int(entry.name) != os.getpid() and (needle in words or boxed):
                pids.append(int(entry.name))
    return pids


def groups_of(pid: int) -> list[str]:
    """Control groups that an evaluator made; those of others may go while one looks."""
    own = f"{PREFIX}{pid}-"
    return [f"{folder}/{name}" for folder, names, _ in os.walk(ROOT) for name in names if name.startswith(own)]


def ends(pid: int, seconds: float) -> bool:
    """True once the process is gone, which a kill takes a moment for; False after that time."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return True
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


def sessions_held(cache: Cache) -> set[str]:
    """Folders of sessions that this process has not ended; others may use the same cache."""
    held = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            link = Path(os.readlink(f"/proc/self/fd/{name}"))
            if link.is_relative_to(cache.sessions):
                held.add(link.relative_to(cache.sessions).parts[0])
    return held
