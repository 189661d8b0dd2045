"""What an attack did, seen from outside once its evaluation is over."""

from __future__ import annotations

import itertools
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.attacks.attack import Effect
from slop_code.attacks.world import EARNED, TAG, TESTS, segment
from slop_code.execution.cache import Cache

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from slop_code.attacks.world import World

LARGE = 24 << 20
MANY = 5000
PIECE = 1 << 20
MOST = 3000
SHARED = {"/tmp": 4, "/var/tmp": 4, "/dev/shm": 4, "/dev/mqueue": 1, "/run": 2}
"""By how deep one has to look."""

KERNEL = ("/proc/net/unix", "/proc/keys", "/proc/self/mountinfo")
"""What is kept in no folder: sockets without a file, keys, mounts."""

SEGMENTS = tuple(f"/proc/sysvipc/{name}" for name in ("shm", "sem", "msg"))
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Whatever a terminal obeys, and what turns a text around."""

MARKUP = "<script>window.pwned"


@dataclass(frozen=True, slots=True)
class Sight:
    effect: Effect
    what: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an evaluator said, as far as an attack can be seen by it."""

    passed: frozenset[str]
    total: int
    broken: str | None = None
    """Why there is no verdict."""

    shown: str = ""
    """What it would print on a terminal."""

    page: str = ""
    """What it would have a browser show."""

    within: tuple[Sight, ...] = ()
    """What only the evaluator could see, from within a place that is gone by now."""


def effects(world: World, verdict: Verdict) -> tuple[Sight, ...]:
    return (*in_verdict(verdict), *verdict.within, *_host(world))


def in_verdict(verdict: Verdict) -> Iterator[Sight]:
    if gained := verdict.passed - EARNED:
        yield Sight(Effect.GAIN, f"passes {', '.join(sorted(gained))}")
    if verdict.broken:
        yield Sight(Effect.LOSS, verdict.broken)
    elif verdict.total != TESTS:
        yield Sight(Effect.LOSS, f"{verdict.total} of {TESTS} tests are accounted for")
    elif lost := EARNED - verdict.passed:
        yield Sight(Effect.LOSS, f"fails {', '.join(sorted(lost))}")
    if CONTROL.search(verdict.shown) or MARKUP in verdict.page:
        yield Sight(Effect.RAW, "what it printed is shown as it is")


def _host(world: World) -> Iterator[Sight]:
    if world.state() != world.before:
        yield Sight(Effect.CHANGED, "files outside of the boxes are not what they were")
    if world.service.reached.is_set():
        yield Sight(Effect.CONNECTED, "a service on the host was reached")
    for left in left_over(world.tag, world.folder):
        yield Sight(Effect.LEFT, left)
    yield from _written(world)


def _written(world: World) -> Iterator[Sight]:
    """Among the results."""
    found = [(path, path.lstat()) for path in world.out.rglob("*")]
    plain = {path: information for path, information in found if stat.S_ISREG(information.st_mode)}
    if any(information.st_mode & (stat.S_ISUID | stat.S_ISGID) for information in plain.values()):
        yield Sight(Effect.LEFT, "a program that runs as another user is among the results")
    if len(plain) > MANY:
        yield Sight(Effect.FLOODED, f"more than {MANY} files were written")
    if sum(information.st_size for information in plain.values()) > LARGE:
        yield Sight(Effect.FLOODED, f"more than {LARGE >> 20} MiB were written")
    if any(_holds(path, world.key.encode()) for path in plain):
        yield Sight(Effect.LEAKED, "a secret of the host is in the results")


def _holds(path: Path, key: bytes) -> bool:
    """Whatever its size: in pieces, each with the end of the one before."""
    last = b""
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            if key in last + piece:
                return True
            last = piece[-len(key) :]
    return False


def left_over(tag: str, folder: Path) -> Iterator[str]:
    """`folder`: the world's, which is not looked into."""
    yield from processes(tag, folder)
    yield from (f"{path} is still there" for path in files(tag, folder, _places()))
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


def _places() -> Iterator[tuple[Path, int]]:
    """Where anybody can write, and where only we should: each with how deep one has to look."""
    yield from ((Path(place), depth) for place, depth in SHARED.items())
    yield from ((Path.home(), 1), (Cache.default().root, 2))


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
