"""Result cache, keyed by the digests of its inputs (`result_cache_key`)."""

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
from slop_code.execution.cache import is_still_at, open_lock, remove_path, try_lock
from slop_code.execution.cache_pruning import RESULTS
from slop_code.execution.environment import parse_size
from slop_code.runs.result_archive import MAX_UNPACKED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from slop_code.execution.cache import Cache

VARIABLE = "SCBENCH_RESULTS_LIMIT"
DEFAULT_LIMIT = 5 << 30
MAGIC = b"slop-code result 1\n"
JOB_DURATIONS = "durations"
MAX_NUMBER_LENGTH = 64
ABANDONED_S = 3600.0
"""Age at which a temporary file or a lock that nobody holds is removed."""

_KEY = re.compile(r"[0-9a-f]{16,128}")


@dataclass(frozen=True, slots=True)
class ResultCacheInfo:
    entries: int
    bytes: int
    oldest_use: float | None
    """Seconds since 1970; None in an empty cache."""

    newest_use: float | None


@dataclass(frozen=True, slots=True)
class ResultClaim:
    """Exclusive lock on a key: its holder evaluates, others wait for the result. It ends with the process."""

    path: Path
    lock: IO[str] | None
    """None where the file system has no locks: then an evaluation may be done twice, which does no harm."""

    def release(self) -> None:
        if self.lock is not None and not self.lock.closed:
            with contextlib.suppress(OSError):
                self.path.unlink()  # while it is locked: a process that waits for the lock notices this
            self.lock.close()


@dataclass(frozen=True, slots=True)
class _CacheEntry:
    used: float
    size: int
    path: Path


class ResultCache:
    """Safe for many threads and processes. Errors of the cache never fail a run.

    The caller puts only results with a verdict into it.
    """

    def __init__(self, cache: Cache, limit: int | None = None) -> None:
        """`limit` is the maximum bytes after `trim`, or None for $SCBENCH_RESULTS_LIMIT, else 5 GiB."""
        self.root = cache.root / RESULTS
        self.limit = limit_from(os.environ) if limit is None else limit

    def _path(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise ValueError(f"not a key: {key!r}")
        return self.root / key[:2] / key

    def has(self, key: str) -> bool:
        """`get` may still return None, as the entry may be damaged, or removed meanwhile."""
        return os.path.lexists(self._path(key))

    def get(self, key: str) -> bytes | None:
        """The archive of this key, as it was put. A damaged entry is removed."""
        path = self._path(key)
        try:
            with open_regular(path) as stream:
                magic, digest = stream.read(len(MAGIC)), stream.read(32)
                archive = stream.read(MAX_UNPACKED) if magic == MAGIC else b""
        except FileNotFoundError:
            return None
        except OSError:
            if not _is_file(path):
                _remove(path)
            return None
        if magic != MAGIC or hashlib.sha256(archive).digest() != digest:
            _remove(path)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return archive

    def put(self, key: str, archive: bytes) -> None:
        with contextlib.suppress(OSError):  # such as a full disk
            write_atomic(self._path(key), b"".join([MAGIC, hashlib.sha256(archive).digest(), archive]))

    def claim(self, key: str) -> ResultClaim | None:
        """None while another thread or process holds the claim: its result may be waited for."""
        path = self._path(key)
        path = path.with_name(f".{path.name}.lock")
        while True:
            try:
                lock = open_lock(path)
            except OSError:
                return ResultClaim(path, None)
            try:
                if not try_lock(lock, fcntl.LOCK_EX):
                    lock.close()
                    return None
                if is_still_at(lock.fileno(), path):
                    return ResultClaim(path, lock)
                lock.close()  # its holder removed the file between opening and locking
            except OSError:
                lock.close()
                return ResultClaim(path, None)

    def save_duration(self, name: str, seconds: float) -> None:
        with contextlib.suppress(OSError):
            write_atomic(self._duration_path(name), f"{seconds:.6g}\n")

    def expected_duration(self, name: str) -> float | None:
        try:
            seconds = float(read_bounded(self._duration_path(name), MAX_NUMBER_LENGTH))
        except (OSError, ValueError):
            return None
        return seconds if math.isfinite(seconds) and seconds >= 0 else None

    def _duration_path(self, name: str) -> Path:
        return self.root / JOB_DURATIONS / digest_of(name)[:32]

    def info(self) -> ResultCacheInfo:
        entries = list(self._entries())
        used = [entry.used for entry in entries]
        total = sum(entry.size for entry in entries)
        return ResultCacheInfo(len(entries), total, min(used, default=None), max(used, default=None))

    def trim(self) -> tuple[int, int]:
        """Removes the least recently used entries until `limit` bytes are left. Returns their number and bytes."""
        self._remove_abandoned()
        entries = sorted(self._entries(), key=lambda entry: (entry.used, entry.path))
        total, removed, freed = sum(entry.size for entry in entries), 0, 0
        for entry in entries:
            if total <= self.limit:
                break
            total -= entry.size
            with contextlib.suppress(OSError):
                entry.path.unlink()
                removed, freed = removed + 1, freed + entry.size
        return removed, freed

    def _entries(self) -> Iterator[_CacheEntry]:
        for path, status in self._files():
            if _KEY.fullmatch(path.name):
                yield _CacheEntry(status.st_mtime, status.st_size, path)

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        for path in self.root.glob("[0-9a-f][0-9a-f]/*"):
            with contextlib.suppress(OSError):
                status = path.lstat()
                if stat.S_ISREG(status.st_mode):
                    yield path, status

    def _remove_abandoned(self) -> None:
        """Temporary files of killed writers, and locks of killed claim holders."""
        old = [path for path, status in self._files() if time.time() - status.st_mtime > ABANDONED_S]
        for path in old:
            key, _, suffix = path.name.removeprefix(".").partition(".")
            if suffix == "lock" and _KEY.fullmatch(key):
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


def _is_file(path: Path) -> bool:
    """True as well where the type is unknown: a good entry may be unreadable for a moment."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return True


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        remove_path(path)
