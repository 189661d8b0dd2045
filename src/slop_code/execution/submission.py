"""The submission as a tree of files: its digest, and reasons why it cannot be evaluated."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.errors import InfrastructureError, SubmissionError
from slop_code.execution.sandbox import REPORTS_DIR, TESTS_DIR

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_DEPTH = 500
CHUNK = 1 << 20
MAX_BYTES = 16 << 30
"""Of all files together, holes included: reading more takes too long."""

MAX_ENTRIES = 1_000_000
MACHINE_ERRORS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO)
"""Errors of the machine, which say nothing about the submission."""

RESERVED = (TESTS_DIR, REPORTS_DIR)
"""Names that the evaluation uses in the workspace; a submission's own files of these names are ignored."""


def open_submission(path: Path) -> Path:
    """The absolute path of the submission's folder; a SubmissionError if it is none."""
    try:
        resolved = path.resolve(strict=True)
        os.listdir(resolved)
    except NotADirectoryError:
        raise SubmissionError(f"{path}: not a folder; give the folder that holds the submission's files") from None
    except FileNotFoundError:
        raise SubmissionError(f"{path}: there is no such folder") from None
    except (OSError, RuntimeError) as error:  # before 3.13 a loop of links is a RuntimeError
        raise SubmissionError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return resolved


@dataclass(frozen=True, slots=True)
class SubmissionTree:
    digest: str
    unreadable: int = 0
    """Number of files and folders that this user cannot read."""

    first: str = ""
    """The path of the first of them."""


def tree_digest(root: Path) -> str:
    return read_tree(root).digest


def read_tree(root: Path) -> SubmissionTree:
    """SHA-256 over names, kinds, the owner's permissions, contents and link targets, without following links.

    The walk uses descriptors, so that no path is too long. A file that cannot be read counts as unreadable, since
    the subject, the same user, cannot read it either.
    """
    walk, unreadable, first = _Walk(hashlib.sha256()), 0, b""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for path in walk.folder(descriptor, b"", 0):
            unreadable, first = unreadable + 1, first or path
    except OSError as error:
        kind = InfrastructureError if error.errno in MACHINE_ERRORS else SubmissionError
        raise kind(f"{root}: cannot be read to its end: {error.strerror}") from error
    except _TooLargeError:
        limit = f"more than {MAX_BYTES >> 30} GiB, or {MAX_ENTRIES} files and folders"
        raise SubmissionError(f"{root}: {limit}; leave out what is no source") from None
    except _TooDeepError:
        raise SubmissionError(f"{root}: folders are nested more than {MAX_DEPTH} deep; flatten them") from None
    finally:
        os.close(descriptor)
    return SubmissionTree(walk.digest.hexdigest(), unreadable, os.fsdecode(first.removeprefix(b"/")))


class _TooDeepError(Exception):
    pass


class _TooLargeError(Exception):
    pass


@dataclass(slots=True)
class _Walk:
    digest: hashlib._Hash
    entries: int = 0
    size: int = 0

    def folder(self, folder: int, prefix: bytes, depth: int) -> Iterator[bytes]:
        """Yield the paths that cannot be read; everything else goes into the digest."""
        if depth > MAX_DEPTH:
            raise _TooDeepError
        for name in sorted(os.fsencode(entry) for entry in os.listdir(folder)):
            if depth == 0 and os.fsdecode(name) in RESERVED:
                continue
            info = os.stat(name, dir_fd=folder, follow_symlinks=False)
            self._count(info)
            path = prefix + b"/" + name
            allowed = b"%o" % (info.st_mode & 0o700)
            if stat.S_ISDIR(info.st_mode):
                _record(self.digest, b"dir", path, allowed)
                inner = _open(name, folder, os.O_RDONLY | os.O_DIRECTORY)
                if inner is None:
                    _record(self.digest, b"unreadable", path)
                    yield path
                    continue
                try:
                    yield from self.folder(inner, path, depth + 1)
                finally:
                    os.close(inner)
            elif stat.S_ISREG(info.st_mode):
                content = _content(name, folder)
                if content is None:
                    yield path
                _record(self.digest, b"file", path, allowed, b"unreadable" if content is None else content)
            elif stat.S_ISLNK(info.st_mode):
                _record(self.digest, b"link", path, os.readlink(name, dir_fd=folder))
            else:
                _record(self.digest, b"special", path, str(stat.S_IFMT(info.st_mode)).encode())

    def _count(self, info: os.stat_result) -> None:
        self.entries += 1
        self.size += info.st_size if stat.S_ISREG(info.st_mode) else 0
        if self.size > MAX_BYTES or self.entries > MAX_ENTRIES:
            raise _TooLargeError


def _open(name: bytes, folder: int, flags: int) -> int | None:
    try:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except PermissionError:
        return None


def _content(name: bytes, folder: int) -> bytes | None:
    descriptor = _open(name, folder, os.O_RDONLY)
    if descriptor is None:
        return None
    digest = hashlib.sha256()
    with os.fdopen(descriptor, "rb", buffering=0) as stream:
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
    return digest.digest()


def _record(digest: hashlib._Hash, *fields: bytes) -> None:
    for field in fields:
        digest.update(len(field).to_bytes(8, "big") + field)
