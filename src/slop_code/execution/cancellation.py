"""Cancellation: every blocking wait also wakes up when its token is cancelled."""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING

from slop_code.errors import InfrastructureError, SlopCodeError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_WAIT_S = 1.0
"""Longest single wait: Python's main thread misses a signal just before a call blocks, until that call returns."""


class EvaluationCancelledError(SlopCodeError):
    """The work was cancelled: nothing failed, and there is no result."""

    def __init__(self) -> None:
        super().__init__("stopped before its end")


class CancelToken:
    """Cancelled once, from any thread or a signal handler; this is never undone."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        self._lock = threading.RLock()
        self._cancelled = self._written = self._closed = False

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True  # before the write: threads that it wakes up read this flag
            if not self._written and not self._closed:
                os.write(self._writer, b"x")
                self._written = True  # after the write: if an interrupt comes in between, the next call writes

    def is_cancelled(self) -> bool:
        return self._cancelled

    def fileno(self) -> int:
        """Readable once the token is cancelled, so that `select` and `poll` take the token."""
        return self._reader

    def close(self) -> None:
        """Call this when nobody waits with the token any more; `is_cancelled` still works."""
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self._reader)
                os.close(self._writer)
                self._reader = self._writer = -1


_CURRENT: ContextVar[CancelToken | None] = ContextVar("cancel_token", default=None)


@contextlib.contextmanager
def cancel_scope(token: CancelToken) -> Iterator[None]:
    """Waits in this block, and in threads that copy its context, raise EvaluationCancelledError once cancelled."""
    reset = _CURRENT.set(token)
    try:
        yield
    finally:
        _CURRENT.reset(reset)


def start_or_fail(thread: threading.Thread) -> None:
    """A machine that allows no further thread is no fault of a submission."""
    try:
        thread.start()
    except RuntimeError as error:
        raise InfrastructureError(f"{error}; raise the limit on processes, such as that of ulimit -u") from error


@contextlib.contextmanager
def deadline(seconds: float | None, message: str) -> Iterator[None]:
    """After `seconds`, waits in this block raise InfrastructureError with this message; None stands for never.

    Cancellation from outside still ends the block as before.
    """
    if seconds is None:
        yield
        return
    outer = _CURRENT.get()
    with contextlib.closing(CancelToken()) as token, contextlib.closing(CancelToken()) as ended:
        watcher = threading.Thread(target=_watch, args=(token, ended, outer, time.monotonic() + seconds), daemon=True)
        start_or_fail(watcher)
        try:
            with cancel_scope(token):
                yield
        except EvaluationCancelledError:
            if outer is not None and outer.is_cancelled():
                raise
            raise InfrastructureError(message) from None
        finally:
            ended.cancel()
            watcher.join()


def _watch(token: CancelToken, ended: CancelToken, outer: CancelToken | None, end: float) -> None:
    """Cancel the token at the end of the time, or with the outer token, unless the block ended before."""
    poll = select.poll()
    for waited in (ended, outer):
        if waited is not None:
            poll.register(waited, select.POLLIN)
    poll.poll(max(0.0, end - time.monotonic()) * 1000)
    if not ended.is_cancelled():
        token.cancel()


def check_cancelled() -> None:
    token = _CURRENT.get()
    if token is not None and token.is_cancelled():
        raise EvaluationCancelledError


def wait_for(descriptor: int | None, seconds: float) -> bool:
    """Whether the descriptor became readable, or was closed, in that time; without a descriptor, sleep for the time."""
    token, poll = _CURRENT.get(), select.poll()
    for waited in (descriptor, token):
        if waited is not None:
            poll.register(waited, select.POLLIN)
    deadline = time.monotonic() + seconds
    while True:
        left = max(0.0, deadline - time.monotonic())
        ready = poll.poll(min(left, MAX_WAIT_S) * 1000)
        check_cancelled()
        if ready or left <= MAX_WAIT_S:
            return bool(ready)
