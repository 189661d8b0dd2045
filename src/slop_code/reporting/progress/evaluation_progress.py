"""Progress of one evaluation: its current step, tests that are done, elapsed and remaining time."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from slop_code.reporting.progress.counted_work import CountedWork, advance, left_text
from slop_code.reporting.progress.progress_text import progress_text
from slop_code.reporting.progress.status_line import StatusLine, is_live
from slop_code.reporting.text import format_duration, one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from slop_code.execution.progress_events import ProgressEvent

BAR_WIDTH = 16


def bar(done: int, total: int, width: int = BAR_WIDTH) -> str:
    filled = min(width, width * done // max(total, 1))
    return "━" * filled + "─" * (width - filled)


class EvaluationProgress:
    """State of an evaluation."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, with_bar: bool) -> None:
        self._clock, self._with_bar = clock, with_bar
        self._start = clock()
        self._step = "preparing"
        self._tests: CountedWork | None = None

    def __call__(self, event: ProgressEvent) -> None:
        if event.is_count:
            self._tests = advance(self._tests, event, self._clock())
        else:
            self._step, self._tests = one_line(progress_text(event)), None

    def text(self) -> str:
        now, tests = self._clock(), self._tests
        elapsed = format_duration(now - self._start)
        if tests is None or not tests.event.count:  # the stream of a container cannot be read before its end
            return f"{self._step}, {elapsed}"
        event = tests.event
        facts = ", ".join(fact for fact in (progress_text(event), elapsed, left_text(tests.left(now))) if fact)
        return f"{bar(event.count, event.total)} {facts}" if self._with_bar else facts


def evaluation_status(*, quiet: bool = False, verbose: bool = False) -> StatusLine:
    """Progress of one evaluation on standard error. Steps that may take minutes stay.

    With `verbose`, all steps stay, and nothing is redrawn, as logs are printed between them. It prevails over `quiet`.
    """

    def stays(event: ProgressEvent) -> bool:
        return event.is_long or (verbose and not event.is_count)

    live = is_live(sys.stderr) and not verbose
    progress = EvaluationProgress(with_bar=live)
    return StatusLine(progress, sys.stderr, stays, live=live, quiet=quiet and not verbose)
