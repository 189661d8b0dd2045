"""Plan of the faults, derived from the seed alone; nothing here touches the machine."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

PER_CAMPAIGN = 10
CLOCKED = ("clock", "mtimes")
SIGNALS = ("kill", "kill-group", "terminate", "interrupt", "interrupt-twice", "interrupt-group")
COLD = ("cold-fetch", "cold-build", "cold-copy", "cold-roster")
DISKS = ("disk-run", "disk-cache", "disk-sessions", "disk-tmp")
DAMAGES = ("cache-before", "cache-during", "result", "raw", "index", "summary")
SOURCES = ("snapshot-gone", "snapshot-changed", "problem-gone", "problem-changed")
HOST_KINDS = (*SIGNALS, *COLD, *DISKS, *DAMAGES, *CLOCKED, *SOURCES)
DOCKER_KINDS = (*SIGNALS, "daemon-hidden", "daemon-killed")
SINGLE = frozenset({*SIGNALS, *COLD, *DISKS, "cache-before", "cache-during", *CLOCKED, *SOURCES, "daemon-hidden"})
"""These also come over a single evaluation; the others are about what a run keeps."""


@dataclass(frozen=True, slots=True)
class Fault:
    number: int
    """In its campaign, from 0."""

    kind: str
    whole: bool
    """Over a whole run, else over a single evaluation."""

    moment: float
    """When, as a part of the time that it takes undisturbed: from 0 to 1."""

    chance: int
    """The seed of every choice that is made where it is performed."""

    @property
    def over(self) -> str:
        return "run" if self.whole else "single"


@dataclass(frozen=True, slots=True)
class Campaign:
    """Faults that come one after the other over the same runs, each over what the last one left."""

    number: int
    faults: tuple[Fault, ...]


def plan(seed: int, count: int, kinds: Sequence[str]) -> list[Campaign]:
    """Every kind comes equally often, as nearly as can be; the order is left to chance."""
    shuffled = random.Random(seed)
    order: list[str] = []
    while len(order) < count:
        order += shuffled.sample(kinds, len(kinds))
    del order[count:]
    return [
        Campaign(number, tuple(_faults(seed, number, order[start : start + PER_CAMPAIGN])))
        for number, start in enumerate(range(0, count, PER_CAMPAIGN))
    ]


def _faults(seed: int, campaign: int, kinds: Sequence[str]) -> list[Fault]:
    found = []
    for number, kind in enumerate(kinds):
        chance = random.Random(f"{seed} {campaign} {number}")
        whole = kind not in SINGLE or chance.random() < 0.7
        found.append(Fault(number, kind, whole, chance.random(), chance.getrandbits(32)))
    return found
