"""Division of a run's slots among checkpoints and parts of checkpoints: the longest first, the tail divided."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

HORIZON = 16
"""Waiting jobs for each slot that are looked at; the share of a job among more than these is one slot anyway."""

TOLERANCE = 0.1
"""Part of a slot by which a share may exceed a whole number of slots, as durations are never the same."""

MIN_GAIN = 0.9
"""A job waits for slots only if it then ends within this part of the time that it takes with the free ones."""


@dataclass(frozen=True, slots=True)
class WaitingWork:
    seconds: float | None
    """Expected duration in one pair, or None if unknown."""

    max_pairs: int = 1
    """Pairs that its tests may be divided among."""


@dataclass(frozen=True, slots=True)
class RunningWork:
    slots: int
    left_s: float | None
    """Expected time until its slots are free, or None if unknown."""


def slots_for_next(waiting: Sequence[WaitingWork], free: int, running: Sequence[RunningWork]) -> int:
    """Slots for the first of `waiting`, or 0 if none is free, or if all end earlier when it waits for more free slots.

    It gets its share of the free slots, by its duration among all that wait. So with many jobs each has one slot,
    and a job that is longer than its share of the run, or one of the last, has several.
    """
    if free < 1:
        return 0
    seconds = _filled([work.seconds for work in waiting])
    first, total = waiting[0], sum(seconds)
    share = math.ceil(free * seconds[0] / total - TOLERANCE) if total else 1
    slots = max(1, min(share, first.max_pairs, free))
    if first.seconds is None:
        return slots
    free_then = free
    for work in sorted(running, key=_until_free):
        if work.left_s is None:
            break
        free_then += work.slots
        longest = max(own / min(each.max_pairs, free_then) for own, each in zip(seconds, waiting, strict=True))
        if work.left_s + max(longest, total / free_then) < MIN_GAIN * seconds[0] / slots:
            return 0
    return slots


def expected_left(seconds: float | None, pairs: int, elapsed: float) -> float | None:
    """Time until a running job ends. One that is late by some time is expected to take as long again."""
    return None if seconds is None else abs(seconds / pairs - elapsed)


def _until_free(work: RunningWork) -> float:
    return float("inf") if work.left_s is None else work.left_s


def _filled(seconds: Sequence[float | None]) -> list[float]:
    """An unknown duration counts as the mean of the known ones."""
    known = [each for each in seconds if each is not None]
    mean = sum(known) / len(known) if known else 1.0
    return [mean if each is None else each for each in seconds]
