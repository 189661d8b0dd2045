"""What an attack did, seen from outside once its evaluation is over."""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.attacks.attack import Effect
from slop_code.attacks.leftovers import left_over
from slop_code.attacks.world import EARNED, TESTS
from slop_code.execution.cache import Cache

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.attacks.world import World

LARGE = 24 << 20
MANY = 5000
PIECE = 1 << 20
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
    for left in left_over(world.tag, world.folder, [(Path.home(), 1), (Cache.default().root, 2)]):
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
