"""Work that is told to stop: whoever waits for something waits for that word as well."""

from __future__ import annotations

import contextlib
import os
import select
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING

from slop_code.errors import SlopCodeError

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST_MS = 2**31 - 1


class StoppedError(SlopCodeError):
    """Somebody wanted an end: nothing is wrong, and nothing is known."""

    def __init__(self) -> None:
        super().__init__("stopped before its end")


class Stop:
    """Set once, from any thread or a signal handler, and never taken back."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        self._lock = threading.RLock()
        self._set = self._told = self._closed = False

    def set(self) -> None:
        with self._lock:
            self._set = True  # before the word goes out: who is woken by it looks here
            if not self._told and not self._closed:
                os.write(self._writer, b"x")
                self._told = True  # after it: an interrupt in between must not keep the word from who sets it again

    def is_set(self) -> bool:
        return self._set

    def fileno(self) -> int:
        """Readable once it is set."""
        return self._reader

    def close(self) -> None:
        """When nobody waits with it any more; that it was set stays known."""
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self._reader)
                os.close(self._writer)
                self._reader = self._writer = -1


_CURRENT: ContextVar[Stop | None] = ContextVar("stop", default=None)


@contextlib.contextmanager
def stoppable(stop: Stop) -> Iterator[None]:
    """What waits in this block, and in threads that copy its context, ends with a StoppedError once it is set."""
    token = _CURRENT.set(stop)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def check() -> None:
    stop = _CURRENT.get()
    if stop is not None and stop.is_set():
        raise StoppedError


def wait_for(descriptor: int | None, seconds: float) -> bool:
    """Whether there is something to read, or an end, in that time; without a descriptor the time passes."""
    stop, poll = _CURRENT.get(), select.poll()
    for waited in (descriptor, stop):
        if waited is not None:
            poll.register(waited, select.POLLIN)
    found = poll.poll(min(max(0.0, seconds) * 1000, LONGEST_MS))
    check()
    return bool(found)
