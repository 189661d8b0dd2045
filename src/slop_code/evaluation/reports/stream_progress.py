"""Tests done so far, read from the stream while the judge still writes it: for progress alone, never evidence."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from slop_code.evaluation.reports.raw_test import load_object, status_of
from slop_code.evaluation.reports.stream import LINE_LIMIT
from slop_code.evaluation.roster import normal_nodeid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from slop_code.execution.progress_events import ProgressCallback, ProgressEvent

SPARE_LINES, LINES_PER_TEST = 1000, 10
"""More than the plugin writes; a stream with more lines is flooded, and the rest of it is not read."""


class StreamProgress:
    """Sums up the streams of all pairs of an evaluation, each of which is read by a thread of its own."""

    def __init__(self, event: ProgressEvent, progress: ProgressCallback) -> None:
        """`event` counts no test yet; it is sent at once."""
        self._event, self._progress = event, progress
        self._lock = threading.Lock()
        progress(event)

    def reader(self, nodeids: Iterable[str]) -> StreamReader:
        """For the stream of a pair that runs these tests."""
        return StreamReader(nodeids, self._add)

    def _add(self, statuses: Sequence[str]) -> None:
        passed = sum(status == "passed" for status in statuses)
        failed = sum(status in ("failed", "error") for status in statuses)
        with self._lock:
            event = self._event
            self._event = replace(
                event,
                count=event.count + len(statuses),
                passed=event.passed + passed,
                failed=event.failed + failed,
            )
            self._progress(self._event)


class StreamReader:
    """Gets the chunks of a stream in order. Only the first result of each expected test counts.

    Without a sandbox a submission can write to the stream, so that any content is possible.
    """

    def __init__(self, nodeids: Iterable[str], add: Callable[[Sequence[str]], None]) -> None:
        self._missing = set(nodeids)
        self._lines_left = SPARE_LINES + LINES_PER_TEST * len(self._missing)
        self._add = add
        self._rest = b""
        """The beginning of a line whose end is not written yet; a line that is too long is cut, and no JSON then."""

    def __call__(self, chunk: bytes) -> None:
        if self._lines_left <= 0:
            return
        *lines, rest = (self._rest + chunk).split(b"\n", self._lines_left)
        self._lines_left -= len(lines)
        self._rest = rest[: LINE_LIMIT + 1]
        if statuses := [status for line in lines if (status := self._status(line)) is not None]:
            self._add(statuses)

    def _status(self, line: bytes) -> str | None:
        """The status of a test that had none before."""
        try:
            fields = load_object(line)
        except ValueError:
            return None
        nodeid, status = fields.get("nodeid"), fields.get("status")
        if fields.get("kind") != "result" or not isinstance(nodeid, str) or not isinstance(status, str):
            return None
        if (name := normal_nodeid(nodeid)) not in self._missing:
            return None
        self._missing.remove(name)
        return status_of(status)
