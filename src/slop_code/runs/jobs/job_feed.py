"""Feed of a scheduler that runs on: jobs, and cancellations of jobs, from any thread."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slop_code.runs.jobs.job_records import Job
    from slop_code.runs.jobs.run_control import RunControl


class JobFeed:
    """Without more jobs, a scheduler with a feed waits for the next one, until its control ends it."""

    def __init__(self, control: RunControl) -> None:
        """`control` is that of the scheduler, which is woken up by it."""
        self._control = control
        self._lock = threading.Lock()
        self._added: list[Job] = []
        self._cancelled: list[Job] = []

    def add(self, job: Job) -> None:
        with self._lock:
            self._added.append(job)
        self._control.wake()

    def cancel(self, job: Job) -> None:
        """The job ends without a verdict, unless it has ended already."""
        with self._lock:
            self._cancelled.append(job)
        self._control.wake()

    def take(self) -> tuple[list[Job], list[Job]]:
        """New jobs in their order, and jobs to cancel."""
        with self._lock:
            taken = self._added, self._cancelled
            self._added, self._cancelled = [], []
        return taken
