"""Problems and environments that stay loaded while their files are unchanged."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Value = TypeVar("Value")
Signature = tuple[int, int, int, int, int]

MAX_LOADED = 1024
SETTLED_NS = 2_000_000_000
"""A file that changed less than this before it was loaded may change again without a new time."""


class LoadedFiles(Generic[Value]):
    """Values by the path of the file that each was loaded from; the least recently used are dropped first."""

    def __init__(self) -> None:
        self._values: OrderedDict[tuple[str, str], tuple[Signature, Value]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, file: Path, load: Callable[[], Value]) -> Value:
        """The value as it was loaded before, unless the file has another signature now."""
        key, signature = (os.fspath(file), os.path.abspath(file)), signature_of(file)
        with self._lock:
            known = self._values.get(key)
            if known is not None and known[0] == signature:
                self._values.move_to_end(key)
                return known[1]
        value = load()  # if the file changes meanwhile, it has another signature at the next call
        if signature is not None and _is_settled(signature):
            with self._lock:
                self._values[key] = signature, value
                self._values.move_to_end(key)
                if len(self._values) > MAX_LOADED:
                    self._values.popitem(last=False)
        return value

    def clear(self) -> None:
        with self._lock:
            self._values.clear()


def signature_of(file: Path) -> Signature | None:
    """None: it cannot be read, which whoever loads it reports."""
    try:
        info = os.stat(file)
    except (OSError, ValueError):
        return None
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def _is_settled(signature: Signature) -> bool:
    return time.time_ns() - max(signature[-2:]) > SETTLED_NS
