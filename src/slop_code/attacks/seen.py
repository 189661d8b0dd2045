"""What an attack did, seen from outside once its evaluation is over."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.attacks.attack import Effect
from slop_code.attacks.world import EARNED, TAG, TESTS, segment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.attacks.world import World

LARGE = 24 << 20
MANY = 5000
SHARED = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue")
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
    return (*_verdict(verdict), *verdict.within, *_host(world))


def _verdict(verdict: Verdict) -> Iterator[Sight]:
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
    for left in left_over(world.tag):
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
    elif any(world.key.encode() in path.read_bytes() for path in plain):
        yield Sight(Effect.LEAKED, "a secret of the host is in the results")


def left_over(tag: str) -> Iterator[str]:
    yield from processes(tag)
    yield from files(tag)
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


def processes(tag: str) -> Iterator[str]:
    """Those of the attack that are still there, by the variable that all of them have."""
    mark = f"{TAG}={tag}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                yield f"process {folder.name} is still there"
        except OSError:
            continue


def files(tag: str) -> Iterator[str]:
    """Those whose names hold the tag, in places where anybody can write."""
    for place in SHARED:
        if os.path.isdir(place):
            yield from (f"{place}/{name} is still there" for name in os.listdir(place) if tag in name)
