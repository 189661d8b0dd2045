"""Waiting for several things at once; each sees the context it was begun in."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Value = TypeVar("Value")


def beside(function: Callable[..., Value], *arguments: object) -> Callable[[], Value]:
    """Begin it in a thread; what is returned waits for its end and gives its value or raises its error."""
    outcome: list[Value] = []
    trouble: list[BaseException] = []

    def work() -> None:
        try:
            outcome.append(function(*arguments))
        except BaseException as error:  # noqa: BLE001  (it is raised where it is waited for)
            trouble.append(error)

    thread = threading.Thread(target=copy_context().run, args=(work,), daemon=True)
    thread.start()

    def value() -> Value:
        thread.join()
        for error in trouble:
            raise error
        return outcome[0]

    return value


def together(*actions: Callable[[], Any]) -> list[Any]:
    """Side by side, all to their end; then the first error is raised."""
    with ThreadPoolExecutor(len(actions)) as pool:
        return [future.result() for future in [pool.submit(copy_context().run, action) for action in actions]]


def processors() -> int:
    """Those that this process may use, where the system tells."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
