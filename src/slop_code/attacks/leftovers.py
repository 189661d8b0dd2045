"""What is still there of an attack once its evaluation is over; looked for with the standard library alone."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TAG = "SLOP_CODE_ATTACK"
"""A variable that every process of an attack has."""

MOST = 3000
SHARED = {"/tmp": 4, "/var/tmp": 4, "/dev/shm": 4, "/dev/mqueue": 1, "/run": 2}
"""By how deep one has to look."""

KERNEL = ("/proc/net/unix", "/proc/keys", "/proc/self/mountinfo")
"""What is kept in no folder: sockets without a file, keys, mounts."""

SEGMENTS = tuple(f"/proc/sysvipc/{name}" for name in ("shm", "sem", "msg"))


def segment(tag: str) -> int:
    """Shared memory, semaphores and queues have numbers for names."""
    return int(tag[:8], 16) & 0x7FFFFFFF


def left_over(tag: str, folder: Path, own: Iterable[tuple[Path, int]] = ()) -> Iterator[str]:
    """`folder`: the world's, which is not looked into; `own`: places of the evaluator's, each with how deep to look."""
    shared = [(Path(place), depth) for place, depth in SHARED.items()]
    yield from processes(tag, folder)
    yield from (f"{path} is still there" for path in files(tag, folder, [*shared, *own]))
    yield from (f"something of it is in {path}" for path in KERNEL if tag in _text(path))
    number = str(segment(tag))
    for path in SEGMENTS:
        if any(line.split()[:1] == [number] for line in _text(path).splitlines()):
            yield f"something of it is in {path}"


def _text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def processes(tag: str, folder: Path) -> Iterator[str]:
    """Those of the attack that are still there, but ourselves and what we were started by.

    They are known by the variable that all of them have; one that emptied its variables by where it works and how it
    was called. One that hides all of that is not seen.
    """
    ours = set(_line(os.getpid()))
    names = (tag.encode(), os.fsencode(folder))
    for number in sorted(int(path.name) for path in Path("/proc").glob("[0-9]*")):
        if number not in ours and _is_of(Path("/proc", str(number)), tag, names):
            yield f"process {number} is still there"


def _is_of(process: Path, tag: str, names: Iterable[bytes]) -> bool:
    try:
        if f"{TAG}={tag}".encode() in (process / "environ").read_bytes().split(b"\0"):
            return True
        told = os.fsencode(os.readlink(process / "cwd")) + b"\0" + (process / "cmdline").read_bytes()
        return any(name in told for name in names)
    except OSError:
        return False


def _line(process: int) -> Iterator[int]:
    """A process, the one that started it, and so on."""
    while process > 0:
        yield process
        process = int((_text(f"/proc/{process}/stat").rpartition(")")[2].split() or ["0", "0"])[1])


def files(tag: str, folder: Path, places: Iterable[tuple[Path, int]], most: int = MOST) -> Iterator[str]:
    """Those whose names hold the tag; what is near the top is looked at first, and no place without end."""
    for place, depth in places:
        level, looked = [str(place)], 0
        for _ in range(depth):
            below: list[str] = []
            for entry in itertools.chain.from_iterable(map(_entries, level)):
                looked += 1
                if tag in entry.name:
                    yield entry.path
                elif looked <= most and entry.is_dir(follow_symlinks=False) and entry.path != str(folder):
                    below.append(entry.path)
            level = below if looked <= most else []


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError:
        return []
