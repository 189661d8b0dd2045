"""Signatures of files, by which a process recognises files that it has verified or read before."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping
    from pathlib import Path

Signature = tuple[int, ...]
Value = TypeVar("Value")

SETTLED_NS = 2_000_000_000
"""Age from which the times of a file tell two versions apart: file systems count in steps of up to two seconds."""

MAX_SIGNATURES = 100_000


def signature_of(status: os.stat_result) -> Signature:
    """Equal as long as nobody wrote to the file, replaced it or changed its mode; of a folder also its list of names.

    A program can set the modification time back, but not the change time, which the kernel sets to the current time.
    """
    return (status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


class SignatureCache(Generic[Value]):
    """Values that follow from the content of files, kept in memory until a signature of one of the files changes."""

    def __init__(
        self, read_status: Callable[[str], os.stat_result] = os.lstat, max_signatures: int = MAX_SIGNATURES
    ) -> None:
        """Above `max_signatures`, the values that were used longest ago are dropped."""
        self._read_status, self._max_signatures = read_status, max_signatures
        self._known: OrderedDict[Hashable, tuple[Mapping[str, Signature], Value]] = OrderedDict()
        self._count = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Value | None:
        """None where there is no value, or where a file changed since."""
        with self._lock:
            known = self._known.get(key)
            if known is None:
                return None
            self._known.move_to_end(key)
        signatures, value = known
        read_status = self._read_status
        try:
            for path, expected in signatures.items():
                if signature_of(read_status(path)) != expected:
                    break
            else:
                return value
        except OSError:
            pass
        with self._lock:
            self._drop(key)
        return None

    def put(
        self, key: Hashable, signatures: Mapping[str, Signature], value: Value, taken_ns: int | None = None
    ) -> None:
        """Keep a value. The signatures were taken before the files were read, so that a later change is noticed.

        A file that changed a moment before that could change again without a new time, so its value is not kept.
        `taken_ns` is when the signatures were taken, or None for now.
        """
        latest = (time.time_ns() if taken_ns is None else taken_ns) - SETTLED_NS
        if any(max(signature[-2:]) > latest for signature in signatures.values()):
            return
        with self._lock:
            self._drop(key)
            self._known[key] = (signatures, value)
            self._count += len(signatures)
            while self._count > self._max_signatures:
                _, (oldest, _) = self._known.popitem(last=False)
                self._count -= len(oldest)

    def load(self, file: Path, load: Callable[[], Value]) -> Value:
        """The value of a file, as it was loaded before unless the file changed since; None is loaded each time."""
        key, path = (os.fspath(file), os.path.abspath(file)), os.fspath(file)
        if (known := self.get(key)) is not None:
            return known
        taken_ns = time.time_ns()
        try:
            signatures = {path: signature_of(self._read_status(path))}
        except (OSError, ValueError):  # whoever loads it reports that
            return load()
        value = load()
        self.put(key, signatures, value, taken_ns)
        return value

    def _drop(self, key: Hashable) -> None:
        if (known := self._known.pop(key, None)) is not None:
            self._count -= len(known[0])
