"""What an attack did, seen from outside once its evaluation is over."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.attacks.attack import Effect
from slop_code.attacks.world import EARNED, TAG, TESTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.attacks.attack import Attack
    from slop_code.attacks.world import World

LARGE = 64 << 20
SHARED = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue")


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
    """What it would print on a terminal or put into a page."""

    within: tuple[Sight, ...] = ()
    """What only the evaluator could see, from within a place that is gone by now."""


def effects(world: World, attack: Attack, verdict: Verdict) -> tuple[Sight, ...]:
    return (*_verdict(attack, verdict), *verdict.within, *_host(world))


def _verdict(attack: Attack, verdict: Verdict) -> Iterator[Sight]:
    if gained := verdict.passed - EARNED:
        yield Sight(Effect.GAIN, f"passes {', '.join(sorted(gained))}")
    if verdict.broken:
        yield Sight(Effect.LOSS, verdict.broken)
    elif verdict.total != TESTS:
        yield Sight(Effect.LOSS, f"{verdict.total} of {TESTS} tests are accounted for")
    elif lost := EARNED - attack.loses - verdict.passed:
        yield Sight(Effect.LOSS, f"fails {', '.join(sorted(lost))}")
    if "\x1b" in verdict.shown or "<script" in verdict.shown:
        yield Sight(Effect.RAW, "what it printed is shown as it is")


def _host(world: World) -> Iterator[Sight]:
    if world.state() != world.before:
        yield Sight(Effect.CHANGED, "files outside of the boxes are not what they were")
    if world.service.reached.is_set():
        yield Sight(Effect.CONNECTED, "a service on the host was reached")
    for left in (*processes(world.tag), *files(world.tag)):
        yield Sight(Effect.LEFT, left)
    written = [path for path in world.out.rglob("*") if path.is_file() and not path.is_symlink()]
    if sum(path.stat().st_size for path in written) > LARGE:
        yield Sight(Effect.FLOODED, f"more than {LARGE >> 20} MiB were written")
    if any(world.key.encode() in path.read_bytes() for path in written if path.stat().st_size <= LARGE):
        yield Sight(Effect.LEAKED, "a secret of the host is in the results")


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
