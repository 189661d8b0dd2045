"""Output of a check: the lines of each step that is done, and the current activity on standard error."""

from __future__ import annotations

import contextlib
import shutil
import sys
import threading
from typing import TYPE_CHECKING, TextIO

from slop_code._io import BestEffortStream
from slop_code.authoring.check.check_problem import CheckListener
from slop_code.reporting.check_lines import ending, heading, step_lines
from slop_code.reporting.progress_text import progress_text
from slop_code.reporting.terminal import ResultConsole, print_lines
from slop_code.reporting.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from slop_code.authoring.check.steps import CheckReport, StepReport
    from slop_code.execution.progress_events import ProgressEvent
    from slop_code.reporting.terminal import StyledLine


class ActivityLine:
    """The current activity: a line of a terminal that the next one replaces; elsewhere only long activities."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = BestEffortStream(stream)
        self._live = stream.isatty()
        self._lock = threading.Lock()

    def __call__(self, event: ProgressEvent) -> None:
        """Any thread may call this."""
        step = one_line(progress_text(event))
        with self._lock:
            if self._live:
                width = max(20, shutil.get_terminal_size().columns - 4)
                self._stream.write(f"\r\x1b[K· {step[:width]}")
            elif event.is_long:
                self._stream.write(f"· {step}\n")
            self._stream.flush()

    def clear(self) -> None:
        with self._lock:
            if self._live:
                self._stream.write("\r\x1b[K")
                self._stream.flush()


class CheckView:
    def __init__(self, *, quiet: bool, every: bool) -> None:
        """`quiet`: standard output is for a document; `every`: see `step_lines`."""
        self._quiet, self._every = quiet, every
        self._activity = ActivityLine(sys.stderr)
        self._console = ResultConsole()
        self.listener = CheckListener(self._activity, self._began, self._done, self._changed)

    def _began(self, problem: str, path: Path, environment: str | None) -> None:
        self._print([heading(problem, path, environment)])

    def _done(self, step: StepReport, folder: Path) -> None:
        self._print(step_lines(step, folder, every=self._every))

    def _changed(self, line: str) -> None:
        self._activity.clear()
        print(f"· {one_line(line)}", file=sys.stderr, flush=True)

    def end(self, reports: Sequence[CheckReport]) -> None:
        self._print([ending(reports)])

    def _print(self, lines: Iterable[StyledLine]) -> None:
        self._activity.clear()
        if self._quiet:
            return
        with contextlib.suppress(BrokenPipeError):  # a closed pipe does not change the exit status
            print_lines(self._console, lines)
