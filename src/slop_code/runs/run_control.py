"""What whoever starts a run says about it: how often to try again, and when to end."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING

from slop_code.execution.cancellation import CancelToken, cancel_scope

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    from slop_code.runs.job_records import JobResult

    News = SimpleQueue[Future[JobResult] | None]


@dataclass(frozen=True, slots=True)
class Retries:
    """For infrastructure failures alone; each wait is twice the one before."""

    times: int = 2
    wait_s: float = 1.0
    longest_s: float = 60.0

    def delay(self, made: int) -> float:
        return float(min(self.wait_s * 2 ** min(made, 64), self.longest_s))


class RunControl:
    """How whoever watches a run ends it before its end; from any thread, or a signal handler."""

    def __init__(self) -> None:
        self.finishing = False
        self.stopped = False
        self._listeners: list[News] = []
        self._stops: list[CancelToken] = []

    def finish(self) -> None:
        """What runs comes to its end, nothing new begins."""
        self.finishing = True
        self._tell()

    def stop(self) -> None:
        """What runs is ended now."""
        self.finishing = self.stopped = True
        self._tell()
        for token in tuple(self._stops):
            token.cancel()

    def _tell(self) -> None:
        for news in tuple(self._listeners):
            news.put(None)

    @contextlib.contextmanager
    def listening(self) -> Iterator[News]:
        """A queue of one's own, which gets a None when there is something new here: several runs may share this."""
        news: News = SimpleQueue()
        self._listeners.append(news)
        try:
            yield news
        finally:
            self._listeners.remove(news)

    @contextlib.contextmanager
    def cancel_scope(self) -> Iterator[None]:
        """What waits in this block ends with an EvaluationCancelledError when this is stopped."""
        with contextlib.closing(CancelToken()) as token, cancel_scope(token):
            self._stops.append(token)
            try:
                if self.stopped:
                    token.cancel()
                yield
            finally:
                self._stops.remove(token)
