"""Threads that see the context they were started in, and the number of processors."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

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
    thread.start()

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


def available_cpus() -> int:
    """Processors that this process may use; all processors where the system has no affinity."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
