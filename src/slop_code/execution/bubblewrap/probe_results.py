"""Results of probes of this machine: a success is kept, and a failure is believed for a minute."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

FAILURE_S = 60.0
"""The machine may have been short of memory for a moment, or its settings may have been changed since."""

Result = TypeVar("Result")


class ProbeResults(Generic[Result]):
    def __init__(self, is_success: Callable[[Result], bool]) -> None:
        self._is_success = is_success
        self._results: dict[Hashable, tuple[Result, float]] = {}
        _all.append(self)

    def get(self, key: Hashable, probe: Callable[[], Result]) -> Result:
        """The result of an earlier probe for this key, else of this one."""
        if (known := self._results.get(key)) is not None:
            result, since = known
            if self._is_success(result) or time.monotonic() - since < FAILURE_S:
                return result
        result = probe()
        self._results[key] = result, time.monotonic()
        return result

    def clear(self) -> None:
        self._results.clear()


_all: list[ProbeResults[Any]] = []


def clear_all() -> None:
    for results in _all:
        results.clear()
