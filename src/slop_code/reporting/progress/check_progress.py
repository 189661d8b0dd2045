"""Progress of a check: its step, the evaluations and tests that are done, and the remaining time of those."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TextIO

from slop_code.execution.progress_events import ProgressKind
from slop_code.reporting.progress.counted_work import CountedWork, advance, left_text
from slop_code.reporting.progress.progress_text import progress_text
from slop_code.reporting.progress.status_line import StatusLine, is_live
from slop_code.reporting.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from slop_code.execution.progress_events import ProgressEvent

WITHIN_EVALUATION = (ProgressKind.COLLECT_TESTS, ProgressKind.RUN_TESTS, ProgressKind.REPEAT_STARVED)
CONCURRENT_EVALUATIONS = (ProgressKind.EVALUATE_MUTANTS, ProgressKind.EVALUATE_CONTROLS, ProgressKind.EVALUATE_LIMITS)
"""The tests of one of them say little."""


class CheckProgress:
    """State of a check."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._step = ""
        self._activity: CountedWork | None = None
        """Evaluations of the step."""
        self._tests: CountedWork | None = None
        self._detail = ""
        """A step of the evaluation that runs."""

    def __call__(self, event: ProgressEvent) -> None:
        now = self._clock()
        if event.is_count:
            self._tests = advance(self._tests, event, now)
        elif event.is_long or event.kind in WITHIN_EVALUATION:
            self._detail = "" if event.kind is ProgressKind.RUN_TESTS else progress_text(event)
        elif event.kind is ProgressKind.CHECK_STEP:
            self._step, self._activity, self._tests, self._detail = progress_text(event), None, None, ""
        else:
            self._activity, self._tests, self._detail = advance(self._activity, event, now), None, ""

    def text(self) -> str:
        now, activity, tests, facts = self._clock(), self._activity, self._tests, [self._step]
        concurrent = activity is not None and activity.event.kind in CONCURRENT_EVALUATIONS
        if activity is not None:
            left = left_text(activity.left(now)) if activity.event.total else ""
            facts.append(progress_text(activity.event) + (f" ({left})" if left else ""))
        if self._detail:
            facts.append(self._detail)
        elif tests is not None and tests.event.count and not concurrent:
            facts.append(f"{tests.event.count}/{tests.event.total} tests")
            facts += [] if activity and activity.event.total else [left_text(tests.left(now))]
        return ", ".join(one_line(fact) for fact in facts if fact)


def check_status(stream: TextIO, *, quiet: bool = False) -> StatusLine:
    """Without a terminal, steps that may take minutes are printed at once, too."""
    live = is_live(stream)
    return StatusLine(CheckProgress(), stream, lambda event: event.is_long and not live, live=live, quiet=quiet)
