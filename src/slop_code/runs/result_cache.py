"""Results that are kept by what they follow from, so that nothing is evaluated twice."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import math
import os
import re
import stat
import time
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from slop_code._io import digest_of, open_regular, read_bounded, write_atomic
from slop_code.errors import UsageError
from slop_code.execution.cache import open_lock, remove_tree, try_lock
from slop_code.execution.environment import parse_size
from slop_code.execution.prune import RESULTS
from slop_code.runs.result_archive import LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from slop_code.execution.cache import Cache

VARIABLE = "SCBENCH_RESULTS_LIMIT"
DEFAULT_LIMIT = 5 << 30
MAGIC = b"slop-code result 1\n"
DURATIONS = "durations"
NUMBER_LIMIT = 64
ABANDONED_S = 3600.0
"""A temporary file or a lock this old is one that nobody wants, unless it is held."""

_KEY = re.compile(r"[0-9a-f]{16,128}")


@dataclass(frozen=True, slots=True)
class ResultCacheInfo:
    entries: int
    bytes: int
    oldest_use: float | None
    """Seconds since 1970; None in an empty store."""

    newest_use: float | None


@dataclass(frozen=True, slots=True)
class Claim:
    """While it is held, nobody else gets one for the same key; the end of the process ends it, too."""

    path: Path
    lock: IO[str] | None
    """None where there is no locking: then the work may be done twice, which is no harm."""

    def release(self) -> None:
        if self.lock is not None and not self.lock.closed:
            with contextlib.suppress(OSError):
                self.path.unlink()  # while it is ours: who waits at the old file sees that it is another now
            self.lock.close()


@dataclass(frozen=True, slots=True)
class _IndexEntry:
    used: float
    size: int
    path: Path


class ResultCache:
    """Used by many threads and processes at a time; whatever is wrong with it, a run goes on without it.

    Only results with a verdict belong here, and that is the caller's business.
    """

    def __init__(self, cache: Cache, limit: int | None = None) -> None:
        """`limit`: bytes that `trim` leaves at most; None: $SCBENCH_RESULTS_LIMIT, else 5 GiB."""
        self.root = cache.root / RESULTS
        self.limit = limit_from(os.environ) if limit is None else limit

    def _place(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise ValueError(f"not a key: {key!r}")
        return self.root / key[:2] / key

    def has(self, key: str) -> bool:
        """Whether there is an entry; `get` may still find it damaged, or gone."""
        return os.path.lexists(self._place(key))

    def get(self, key: str) -> bytes | None:
        """The parcel of this key, as it was put; a damaged one is as good as none, and removed."""
        path = self._place(key)
        try:
            with open_regular(path) as stream:
                magic, digest = stream.read(len(MAGIC)), stream.read(32)
                parcel = stream.read(LIMIT) if magic == MAGIC else b""
        except FileNotFoundError:
            return None
        except OSError:
            if not _is_file(path):
                _remove(path)
            return None
        if magic != MAGIC or hashlib.sha256(parcel).digest() != digest:
            _remove(path)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return parcel

    def put(self, key: str, parcel: bytes) -> bool:
        """Whether it is kept; where it cannot be (a full disk) nothing new is there."""
        try:
            write_atomic(self._place(key), b"".join([MAGIC, hashlib.sha256(parcel).digest(), parcel]))
        except OSError:
            return False
        return True

    def claim(self, key: str) -> Claim | None:
        """None when another thread or process holds it now: its result may be waited for."""
        path = self._place(key)
        path = path.with_name(f".{path.name}.lock")
        while True:
            try:
                lock = open_lock(path)
            except OSError:
                return Claim(path, None)
            try:
                if not try_lock(lock, fcntl.LOCK_EX):
                    lock.close()
                    return None
                if _is_same(lock, path):
                    return Claim(path, lock)
                lock.close()  # its holder removed it between our opening and locking
            except OSError:
                lock.close()
                return Claim(path, None)

    def remember(self, name: str, seconds: float) -> None:
        """How long something took the last time."""
        with contextlib.suppress(OSError):
            write_atomic(self._duration(name), f"{seconds:.6g}\n")

    def expected(self, name: str) -> float | None:
        try:
            seconds = float(read_bounded(self._duration(name), NUMBER_LIMIT))
        except (OSError, ValueError):
            return None
        return seconds if math.isfinite(seconds) and seconds >= 0 else None

    def _duration(self, name: str) -> Path:
        return self.root / DURATIONS / digest_of(name)[:32]

    def info(self) -> ResultCacheInfo:
        entries = list(self._entries())
        used = [entry.used for entry in entries]
        total = sum(entry.size for entry in entries)
        return ResultCacheInfo(len(entries), total, min(used, default=None), max(used, default=None))

    def prune(self, limit: int) -> tuple[int, int]:
        """Remove what was not used for the longest time until so many bytes are left: how many, and their bytes."""
        self._remove_abandoned()
        entries = sorted(self._entries(), key=lambda entry: (entry.used, entry.path))
        total, removed, freed = sum(entry.size for entry in entries), 0, 0
        for entry in entries:
            if total <= limit:
                break
            total -= entry.size
            with contextlib.suppress(OSError):
                entry.path.unlink()
                removed, freed = removed + 1, freed + entry.size
        return removed, freed

    def trim(self) -> tuple[int, int]:
        return self.prune(self.limit)

    def _entries(self) -> Iterator[_IndexEntry]:
        for path, status in self._files():
            if _KEY.fullmatch(path.name):
                yield _IndexEntry(status.st_mtime, status.st_size, path)

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        for path in self.root.glob("[0-9a-f][0-9a-f]/*"):
            with contextlib.suppress(OSError):
                status = path.lstat()
                if stat.S_ISREG(status.st_mode):
                    yield path, status

    def _remove_abandoned(self) -> None:
        """What killed writers and killed holders of claims left."""
        old = [path for path, status in self._files() if time.time() - status.st_mtime > ABANDONED_S]
        for path in old:
            key, _, what = path.name.removeprefix(".").partition(".")
            if what == "lock" and _KEY.fullmatch(key):
                if claim := self.claim(key):
                    claim.release()
            elif path.name.startswith("."):
                with contextlib.suppress(OSError):
                    path.unlink()


def limit_from(variables: Mapping[str, str]) -> int:
    text = variables.get(VARIABLE)
    if not text:
        return DEFAULT_LIMIT
    try:
        return parse_limit(text)
    except ValueError as error:
        raise UsageError(f"{VARIABLE}={text}: expected {error}") from None


def parse_limit(text: str) -> int:
    """A size as in environment files, or 0."""
    return 0 if text.strip() == "0" else parse_size(text)


def _is_same(lock: IO[str], path: Path) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    held = os.fstat(lock.fileno())
    return (held.st_dev, held.st_ino) == (there.st_dev, there.st_ino)


def _is_file(path: Path) -> bool:
    """Also where that cannot be found out: it may be a good one that only cannot be read now."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return True


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            remove_tree(path)
        else:
            path.unlink()
