"""Report that is kept current while an evaluation goes on: a thread writes it again when results have changed."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from slop_code._io import os_error_text
from slop_code._suggestions import first_names
from slop_code.errors import SlopCodeError
from slop_code.reporting.html.run_page import LiveReport, write_report
from slop_code.reporting.text import one_line
from slop_code.runs.read_results import RunResults
from slop_code.runs.results_so_far import running_texts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from slop_code.evaluation.policy import Policy

MIN_INTERVAL_S = 3.0
UNCHANGED_INTERVAL_S = 30.0
"""Time after which the page is written without a change, so that its reader knows that the evaluation goes on."""

SHOWN_RUNNING = 4
MAX_WRITE_SHARE = 0.05
"""Maximum share of the time that is spent on writing."""

ReadResults = Callable[[], Sequence[RunResults]]
"""The results at the moment of the call, which is in another thread."""


def interval(cost: float, *, changed: bool) -> float:
    """Seconds from one write, which took `cost` seconds, to the next."""
    return max(MIN_INTERVAL_S if changed else UNCHANGED_INTERVAL_S, cost / MAX_WRITE_SHARE)


@contextlib.contextmanager
def live_page(
    path: Path, policy: Policy, warn: Callable[[str], None], announce: Callable[[], None]
) -> Iterator[Callable[[ReadResults], None]]:
    """A function that names the results to show whenever they have changed.

    At the end, whatever happened, the page is written without the live mark. A failure to write is a warning.
    `announce` is called once, after the first write.
    """
    writer = _PageWriter(path, policy, warn, announce)
    thread = threading.Thread(target=writer.keep_current, name="report", daemon=True)
    thread.start()
    try:
        yield writer.show
    finally:
        writer.ended.set()
        writer.changed.set()
        thread.join()
        writer.write()


def _running(results: Sequence[RunResults]) -> str:
    return first_names([one_line(text) for text in running_texts(results)], SHOWN_RUNNING)


class _PageWriter:
    def __init__(self, path: Path, policy: Policy, warn: Callable[[str], None], announce: Callable[[], None]) -> None:
        self.path, self.policy, self.warn, self.announce = path, policy, warn, announce
        self.changed, self.ended = threading.Event(), threading.Event()
        self.read: ReadResults | None = None
        self.warnings: set[str] = set()
        self.announced = False

    def show(self, read: ReadResults) -> None:
        self.read = read
        self.changed.set()

    def keep_current(self) -> None:
        self.changed.wait()
        cost = 0.0
        while not self.ended.is_set():
            self.changed.clear()
            began = time.monotonic()
            self.write(every=interval(cost, changed=False))
            cost = time.monotonic() - began
            if not self.ended.wait(interval(cost, changed=True)):
                self.changed.wait(interval(cost, changed=False) - interval(cost, changed=True))

    def write(self, every: float | None = None) -> None:
        """The page is written again after `every` seconds at the latest. With None, this is the last time."""
        if self.read is None:
            return
        try:
            results = self.read()
            live = None if every is None else LiveReport(time.time(), every, _running(results))
            write_report(results, [self.policy], self.path, live)
            if not self.announced:
                self.announced = True
                self.announce()
        except Exception as error:  # noqa: BLE001  (no error of a page may end an evaluation)
            reason = one_line(self._reason(error))
            if reason not in self.warnings:  # once, although every write may fail
                self.warnings.add(reason)
                self.warn(f"the report cannot be written: {reason}")

    def _reason(self, error: Exception) -> str:
        if isinstance(error, OSError):
            return os_error_text(error, self.path)
        return str(error) if isinstance(error, SlopCodeError) else f"{self.path}: {error!r}"
