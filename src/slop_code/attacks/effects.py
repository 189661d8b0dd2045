"""Effects of an attack, observed from outside after its evaluation."""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.attacks.attack import Effect
from slop_code.attacks.attack_host import EARNED, TEST_COUNT
from slop_code.attacks.leftovers import find_leftovers
from slop_code.execution.cache import Cache

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.attacks.attack_host import AttackHost

MAX_BYTES = 24 << 20
MAX_FILES = 5000
CHUNK = 1 << 20
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters that a terminal obeys, and marks that reverse the direction of text."""

MARKUP = "<script>window.pwned"


@dataclass(frozen=True, slots=True)
class Observation:
    effect: Effect
    detail: str


@dataclass(frozen=True, slots=True)
class ObservedVerdict:
    """The part of an evaluator's answer in which an attack can show."""

    passed: frozenset[str]
    total: int
    failure: str | None = None
    """The reason why there is no verdict."""

    terminal: str = ""
    """Text that the evaluator would print on a terminal."""

    page: str = ""
    """HTML that the evaluator would have a browser show."""

    inside: tuple[Observation, ...] = ()
    """Observations that only the evaluator could make, inside a box that is gone by now."""


def observe(host: AttackHost, verdict: ObservedVerdict) -> tuple[Observation, ...]:
    return (*observe_verdict(verdict), *verdict.inside, *_observe_host(host))


def observe_verdict(verdict: ObservedVerdict) -> Iterator[Observation]:
    if gained := verdict.passed - EARNED:
        yield Observation(Effect.GAIN, f"passes {', '.join(sorted(gained))}")
    if verdict.failure:
        yield Observation(Effect.LOSS, verdict.failure)
    elif verdict.total != TEST_COUNT:
        yield Observation(Effect.LOSS, f"{verdict.total} of {TEST_COUNT} tests are accounted for")
    elif lost := EARNED - verdict.passed:
        yield Observation(Effect.LOSS, f"fails {', '.join(sorted(lost))}")
    if CONTROL.search(verdict.terminal) or MARKUP in verdict.page:
        yield Observation(Effect.RAW, "its output is shown unescaped")


def _observe_host(host: AttackHost) -> Iterator[Observation]:
    if host.state() != host.state_before:
        yield Observation(Effect.CHANGED, "files outside the boxes were changed")
    if host.service.reached.is_set():
        yield Observation(Effect.CONNECTED, "a service on the host was reached")
    for leftover in find_leftovers(host.tag, host.folder, [(Path.home(), 1), (Cache.default().root, 2)]):
        yield Observation(Effect.LEFT, leftover)
    yield from _observe_output(host)


def _observe_output(host: AttackHost) -> Iterator[Observation]:
    entries = [(path, path.lstat()) for path in host.output.rglob("*")]
    regular = {path: information for path, information in entries if stat.S_ISREG(information.st_mode)}
    if any(information.st_mode & (stat.S_ISUID | stat.S_ISGID) for information in regular.values()):
        yield Observation(Effect.LEFT, "a program that runs as another user is among the results")
    if len(regular) > MAX_FILES:
        yield Observation(Effect.FLOODED, f"more than {MAX_FILES} files were written")
    if sum(information.st_size for information in regular.values()) > MAX_BYTES:
        yield Observation(Effect.FLOODED, f"more than {MAX_BYTES >> 20} MiB were written")
    if any(_contains(path, host.key.encode()) for path in regular):
        yield Observation(Effect.LEAKED, "a secret of the host is in the results")


def _contains(path: Path, key: bytes) -> bool:
    """Read in chunks, each with the end of the previous chunk, so that a key across a border is seen."""
    previous = b""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            if key in previous + chunk:
                return True
            previous = chunk[-len(key) :]
    return False
