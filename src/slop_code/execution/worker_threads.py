"""Worker threads whose calls can be cancelled one by one. The threads mostly wait: processes do the work."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

from slop_code.execution.cancellation import CancelToken, cancel_scope, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

Value = TypeVar("Value")


class WorkerThreads:
    """At most `count` calls run at a time, the others wait in a queue. Closed with `close`."""

    def __init__(self, count: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix=name)
        self._tokens: dict[Future[Any], CancelToken] = {}

    def submit(self, function: Callable[..., Value], *arguments: object) -> Future[Value]:
        """Call the function in a thread, with the context of the caller and a cancel scope of its own."""
        token = CancelToken()

        def work() -> Value:
            with cancel_scope(token):
                return function(*arguments)

        try:
            future = self._pool.submit(copy_context().run, work)
        except BaseException:
            token.cancel()  # the pool may have queued the call before it failed to start a thread
            token.close()
            raise
        self._tokens[future] = token
        future.add_done_callback(self._forget)
        return future

    def _forget(self, ended: Future[Any]) -> None:
        self._tokens.pop(ended).close()

    def cancel(self, future: Future[Any]) -> None:
        """Wake up the waits of this call. A call that is still queued is made, and finds its token cancelled."""
        if (token := self._tokens.get(future)) is not None:
            token.cancel()

    def drop(self, future: Future[Any]) -> None:
        """Cancel the call; one that is still queued is never made, and its future has no value."""
        if not future.cancel():
            self.cancel(future)

    def drop_all(self) -> None:
        for future in tuple(self._tokens):
            self.drop(future)

    def wait_for(self, future: Future[Any]) -> None:
        """Wait until the call has ended. Where the wait is cancelled or interrupted, the call is, and ends first."""
        with contextlib.closing(CancelToken()) as ended:
            future.add_done_callback(lambda _: ended.cancel())
            try:
                while not ended.is_cancelled():
                    wait_for(ended.fileno(), float("inf"))
            except BaseException:
                self.drop(future)
                done = threading.Event()
                future.add_done_callback(lambda _: done.set())
                done.wait()
                raise

    async def wait_for_async(self, future: Future[Any]) -> None:
        """As `wait_for`, in an event loop: where the task is cancelled, the call ends before the cancellation goes on.

        A second cancellation meanwhile does not end the wait.
        """
        ended = asyncio.wrap_future(future)
        try:
            await asyncio.wait([ended])
        except asyncio.CancelledError:
            self.drop(future)
            while not ended.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([ended])
            raise
        finally:
            if ended.done() and not ended.cancelled():
                ended.exception()  # the caller reads that of `future`

    def close(self) -> None:
        """Wait for every call, also those in the queue."""
        self._pool.shutdown()
