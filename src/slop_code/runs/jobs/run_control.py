"""Retry policy, and the control that ends a run early."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from slop_code._arguments import check_type, wrong_argument
from slop_code.execution.cancellation import MAX_WAIT_S, CancelToken, cancel_scope

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    from slop_code.runs.jobs.job_records import JobResult

    WakeQueue = SimpleQueue[Future[JobResult] | None]


@dataclass(frozen=True, slots=True)
class Retries:
    """Retries of infrastructure failures, with exponential backoff."""

    times: int = 2
    wait_s: float = 1.0
    max_wait_s: float = 60.0

    def __post_init__(self) -> None:
        check_type("times", self.times, (int,), "a whole number")
        for name, value in (("times", self.times), ("wait_s", self.wait_s), ("max_wait_s", self.max_wait_s)):
            check_type(name, value, (int, float), "a number")
            if not value >= 0:
                raise wrong_argument(name, value, "at least 0")

    def delay(self, retries_made: int) -> float:
        return float(min(self.wait_s * 2 ** min(retries_made, 64), self.max_wait_s))


class RunControl:
    """Ends a run early, from any thread or from a signal handler. Runs that share a control end together."""

    def __init__(self) -> None:
        self.finishing = False
        self.stopped = False
        self._listeners: list[WakeQueue] = []
        self._tokens: list[CancelToken] = []

    def finish(self) -> None:
        """Let running jobs finish and start no others."""
        self.finishing = True
        self.wake()

    def stop(self) -> None:
        """Cancel running jobs."""
        self.finishing = self.stopped = True
        self.wake()
        for token in tuple(self._tokens):
            token.cancel()

    def wake(self) -> None:
        """Let the runs look at this control, and at their feeds."""
        for queue in tuple(self._listeners):
            queue.put(None)

    @contextlib.contextmanager
    def wake_queue(self) -> Iterator[WakeQueue]:
        """A queue for finished jobs, which also gets a None when `finish` or `stop` is called."""
        queue: WakeQueue = SimpleQueue()
        self._listeners.append(queue)
        try:
            yield queue
        finally:
            self._listeners.remove(queue)

    def wait(self, seconds: float) -> None:
        """Sleep for that time, or until `finish` or `stop` is called."""
        deadline = time.monotonic() + seconds
        with self.wake_queue() as queue:
            while not self.finishing and (left := deadline - time.monotonic()) > 0:
                with contextlib.suppress(Empty):
                    queue.get(timeout=min(left, MAX_WAIT_S))

    @contextlib.contextmanager
    def cancel_scope(self) -> Iterator[None]:
        """Blocking waits in this block raise EvaluationCancelledError when `stop` is called."""
        with contextlib.closing(CancelToken()) as token, cancel_scope(token):
            self._tokens.append(token)
            try:
                if self.stopped:
                    token.cancel()
                yield
            finally:
                self._tokens.remove(token)
