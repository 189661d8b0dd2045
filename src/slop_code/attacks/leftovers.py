"""Search for what an attack left behind: processes, files, sockets, shared memory. Standard library only."""

from __future__ import annotations

import itertools
import os
import select
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TAG = "SLOP_CODE_ATTACK"
"""Environment variable of every process of an attack."""

MAX_ENTRIES = 3000
END_S = 60.0
"""Seconds for killed processes to end, on a busy machine too."""

SHARED_FOLDERS = {"/tmp": 4, "/var/tmp": 4, "/dev/shm": 4, "/dev/mqueue": 1, "/run": 2}
"""Folders to search, with the depth of the search."""

KERNEL_TABLES = ("/proc/net/unix", "/proc/keys", "/proc/self/mountinfo")
"""Abstract sockets, keys and mounts, which are in no folder."""

IPC_TABLES = tuple(f"/proc/sysvipc/{name}" for name in ("shm", "sem", "msg"))


def ipc_key(tag: str) -> int:
    """Key for System V shared memory, semaphores and queues, which have numbers instead of names."""
    return int(tag[:8], 16) & 0x7FFFFFFF


def find_leftovers(tag: str, excluded: Path, folders: Iterable[tuple[Path, int]] = ()) -> Iterator[str]:
    """Search the shared folders and `folders` (path, depth), but not `excluded`, the attack's own host folder."""
    shared = [(Path(path), depth) for path, depth in SHARED_FOLDERS.items()]
    yield from processes(tag, excluded)
    yield from (f"{path} is still there" for path in files(tag, excluded, [*shared, *folders]))
    yield from (f"something of it is in {path}" for path in KERNEL_TABLES if tag in _read(path))
    key = str(ipc_key(tag))
    for path in IPC_TABLES:
        if any(line.split()[:1] == [key] for line in _read(path).splitlines()):
            yield f"something of it is in {path}"


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def processes(tag: str, host_folder: Path) -> Iterator[str]:
    """Processes of the attack, without this process and its ancestors.

    They are recognised by the tag in their environment. A process that cleared its environment is recognised by its
    working directory and its arguments. A process that hides all of these is not recognised. What was killed, and ends
    within `END_S`, was not left behind; a process that replaces itself by its child again and again was.
    """
    deadline = time.monotonic() + END_S
    while (left := _processes_of_attack(tag, host_folder)) and time.monotonic() < deadline:
        for pid in left:
            _wait_for_end(pid, deadline)
    yield from (f"process {pid} is still there" for pid in left)


def _processes_of_attack(tag: str, host_folder: Path) -> list[int]:
    """Looks again at processes that are new: one that ended while it was looked at may have left a child."""
    marks = (tag.encode(), os.fsencode(host_folder))
    seen = set(_ancestors(os.getpid()))
    left: list[int] = []
    while not left and (new := {int(path.name) for path in Path("/proc").glob("[0-9]*")} - seen):
        left = [pid for pid in sorted(new) if _belongs_to_attack(Path("/proc", str(pid)), tag, marks)]
        seen |= new
    return left


def _belongs_to_attack(process: Path, tag: str, marks: Iterable[bytes]) -> bool:
    try:
        if f"{TAG}={tag}".encode() in (process / "environ").read_bytes().split(b"\0"):
            return True
        description = os.fsencode(os.readlink(process / "cwd")) + b"\0" + (process / "cmdline").read_bytes()
        return any(mark in description for mark in marks)
    except OSError:
        return False


def _wait_for_end(pid: int, deadline: float) -> None:
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return
    try:
        select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
    finally:
        os.close(descriptor)


def _ancestors(pid: int) -> Iterator[int]:
    """The process itself, its parent, and so on."""
    while pid > 0:
        yield pid
        pid = int((_read(f"/proc/{pid}/stat").rpartition(")")[2].split() or ["0", "0"])[1])


def files(
    tag: str, excluded: Path, folders: Iterable[tuple[Path, int]], max_entries: int = MAX_ENTRIES
) -> Iterator[str]:
    """Files with the tag in their name, breadth first, so that a bounded search sees the upper levels."""
    for folder, depth in folders:
        level, visited = [str(folder)], 0
        for _ in range(depth):
            below: list[str] = []
            for entry in itertools.chain.from_iterable(map(_entries, level)):
                visited += 1
                if tag in entry.name:
                    yield entry.path
                elif visited <= max_entries and entry.is_dir(follow_symlinks=False) and entry.path != str(excluded):
                    below.append(entry.path)
            level = below if visited <= max_entries else []


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []
