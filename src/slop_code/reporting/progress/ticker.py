"""Thread that calls a function at intervals."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

TICKER = "ticker"
"""Name of the threads."""


class Ticker:
    """The first call is after the first interval."""

    def __init__(self, action: Callable[[], None], interval: float) -> None:
        self._action, self._interval = action, interval
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._call_until_end, name=TICKER, daemon=True)

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive() and not self._ended.is_set()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """No call follows. A ticker that was not started may be stopped, too."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _call_until_end(self) -> None:
        while not self._ended.wait(self._interval):
            self._action()
