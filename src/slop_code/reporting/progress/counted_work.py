"""Counted work: tests or evaluations done of all, and the remaining time at the pace so far."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from slop_code.reporting.text import format_duration

if TYPE_CHECKING:
    from slop_code.execution.progress_events import ProgressEvent


@dataclass(frozen=True, slots=True)
class CountedWork:
    event: ProgressEvent
    """The last one."""

    start: tuple[int, float]
    """Count and time from which the pace is measured."""

    time: float
    """That of the last event."""

    def left(self, now: float) -> float | None:
        """Remaining seconds, not below 0; None until something is done since the start."""
        done, seconds = self.event.count - self.start[0], self.time - self.start[1]
        if done <= 0:
            return None
        return max(0.0, seconds * (self.event.total - self.event.count) / done - (now - self.time))


def advance(before: CountedWork | None, event: ProgressEvent, now: float) -> CountedWork:
    """The state after an event. Other work, and a count that does not grow, begin anew.

    Tests count from the first result on: the start of pytest says nothing about their pace.
    """
    same = before is not None and before.event.kind is event.kind and before.event.count <= event.count
    waiting = before is not None and event.is_count and not before.event.count
    if before is None or not same or waiting:
        return CountedWork(event, (event.count, now), now)
    if event.count == before.event.count:
        return replace(before, event=event)
    return replace(before, event=event, time=now)


def left_text(seconds: float | None) -> str:
    """Empty where nothing is known, or the work should have ended."""
    if not seconds:
        return ""
    return f"about {max(1, round(seconds))} s left" if seconds < 59.5 else f"about {format_duration(seconds)} left"
