"""Threads that see the context they were started in."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

from slop_code.execution.cancellation import CancelToken, cancel_scope, start_or_fail, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Value = TypeVar("Value")


def start_thread(function: Callable[..., Value], *arguments: object) -> Callable[[], Value]:
    """Call the function in a thread; the callable returned here joins it and gives its value or raises its error."""
    values: list[Value] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            values.append(function(*arguments))
        except BaseException as error:  # noqa: BLE001  (it is raised where the thread is joined)
            errors.append(error)

    thread = threading.Thread(target=copy_context().run, args=(work,), daemon=True)
    start_or_fail(thread)

    def join() -> Value:
        thread.join()
        for error in errors:
            raise error
        return values[0]

    return join


def run_concurrently(*actions: Callable[[], Any]) -> list[Any]:
    """Every action runs to its end; then the first error is raised."""
    with ThreadPoolExecutor(len(actions)) as pool:
        return [future.result() for future in [pool.submit(copy_context().run, action) for action in actions]]


def run_cancellable(actions: Sequence[Callable[[], Value]]) -> list[Value]:
    """Runs the actions in threads; returns their values in order. An error or a cancellation cancels all actions."""
    token, ends = CancelToken(), [CancelToken() for _ in actions]
    errors: list[BaseException] = []
    """In the order of time: later ones are of actions that the first error has cancelled."""

    def work(action: Callable[[], Value], end: CancelToken) -> Value:
        try:
            return action()
        except BaseException as error:
            errors.append(error)
            token.cancel()
            raise
        finally:
            end.cancel()

    values: list[Callable[[], Value]] = []
    try:
        with cancel_scope(token):
            for action, end in zip(actions, ends, strict=True):
                values.append(start_thread(work, action, end))
        for end in ends:
            while not end.is_cancelled():
                wait_for(end.fileno(), float("inf"))
        for error in errors:
            raise error
        return [value() for value in values]
    except BaseException:
        token.cancel()
        for value in values:
            with contextlib.suppress(BaseException):
                value()
        raise
    finally:
        for opened in (token, *ends):
            opened.close()
