"""What whoever starts a run says about it: how often to try again, and when to end."""

from __future__ import annotations

from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import Future

    from slop_code.runs.records import Done


@dataclass(frozen=True, slots=True)
class Retries:
    """For infrastructure failures alone; each wait is twice the one before."""

    times: int = 2
    wait_s: float = 1.0
    longest_s: float = 60.0

    def delay(self, made: int) -> float:
        return float(min(self.wait_s * 2 ** min(made, 64), self.longest_s))


class Control:
    """How whoever watches a run ends it before its end; from any thread, or a signal handler."""

    def __init__(self) -> None:
        self.finishing = False
        self.stopped = False
        self.news: SimpleQueue[Future[Done] | None] = SimpleQueue()

    def finish(self) -> None:
        """What runs comes to its end, nothing new begins."""
        self.finishing = True
        self.news.put(None)

    def stop(self) -> None:
        """What runs is ended now."""
        self.finishing = self.stopped = True
        self.news.put(None)
