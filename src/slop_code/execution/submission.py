"""The submission as a tree of files: a walk by descriptors, its digest, and a summary that `slopbox` makes too."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import struct
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from slop_code.errors import InfrastructureError, SubmissionError
from slop_code.execution.sandbox import REPORTS_DIR, TESTS_DIR

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_DEPTH = 500
CHUNK = 1 << 20
PAGE = 4096
MAX_BYTES = 16 << 30
"""Bytes of all files together, holes included: reading more takes too long."""

MAX_ENTRIES = 1_000_000
MACHINE_ERRORS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO)
"""Errors of the machine, which say nothing about the submission."""

RESERVED = (TESTS_DIR, REPORTS_DIR)
"""Names that the evaluation uses in the workspace; a submission's own files of these names are ignored."""

KINDS = {stat.S_IFREG: b"F", stat.S_IFDIR: b"D", stat.S_IFLNK: b"L", stat.S_IFIFO: b"P", stat.S_IFSOCK: b"S"}
"""The letters that `copy_tree.c` puts into its checksum; devices are not copied."""


def open_submission(path: Path) -> Path:
    """The absolute path of the submission's folder; a SubmissionError if it is none."""
    try:
        resolved = path.resolve(strict=True)
        os.listdir(resolved)
    except (NotADirectoryError, FileNotFoundError) as error:
        fact = "not a folder" if isinstance(error, NotADirectoryError) else "there is no such folder"
        raise SubmissionError(f"{path}: {fact}; give the folder that holds the submission's files") from None
    except (OSError, RuntimeError) as error:  # before 3.13 a loop of links is a RuntimeError
        raise SubmissionError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return resolved


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """Valid until the next entry is asked for, as the walk then closes the descriptors."""

    folder: int
    path: bytes
    """Relative to the root of the walk."""

    info: os.stat_result
    descriptor: int | None
    """Descriptor of a file or a folder that this user may read; the subject cannot read more than this user."""

    @property
    def name(self) -> bytes:
        return self.path.rpartition(b"/")[2]

    @property
    def kind(self) -> int:
        return stat.S_IFMT(self.info.st_mode)

    @property
    def readable(self) -> bool:
        return self.descriptor is not None or self.kind not in (stat.S_IFREG, stat.S_IFDIR)

    @property
    def size(self) -> int:
        return self.info.st_size if self.kind == stat.S_IFREG and self.readable else 0

    def content(self) -> Iterator[bytes]:
        """As many bytes as `size`, even if the file shrinks or grows meanwhile."""
        position = 0
        while self.descriptor is not None and (left := min(self.size - position, CHUNK)) > 0:
            part = os.pread(self.descriptor, left, position) or bytes(left)
            yield part
            position += len(part)

    def target(self) -> bytes:
        return os.readlink(self.name, dir_fd=self.folder)


def walk_tree(root: Path, without: tuple[str, ...] = ()) -> Iterator[TreeEntry]:
    """Every entry of a folder, sorted, folders before what is in them; `without` are names at the top to leave out.

    Links are not followed, and paths are never opened as a whole: a tree may be deeper than a path may be long.
    """
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield from _walk(root, descriptor, b"", {os.fsencode(name) for name in without})
    finally:
        os.close(descriptor)


def _walk(root: Path, folder: int, prefix: bytes, without: set[bytes]) -> Iterator[TreeEntry]:
    if prefix.count(b"/") > MAX_DEPTH:
        raise SubmissionError(f"{root}: folders are nested more than {MAX_DEPTH} deep; flatten them")
    for name in sorted(os.fsencode(entry) for entry in os.listdir(folder)):
        path = prefix + name
        if path in without:
            continue
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
        descriptor = _open(name, folder) if stat.S_ISREG(info.st_mode) or stat.S_ISDIR(info.st_mode) else None
        try:
            yield TreeEntry(folder, path, info, descriptor)
            if descriptor is not None and stat.S_ISDIR(info.st_mode):
                yield from _walk(root, descriptor, path + b"/", without)
        finally:
            if descriptor is not None:
                os.close(descriptor)


def _open(name: bytes, folder: int) -> int | None:
    try:
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except PermissionError:
        return None


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
    """SHA-256 over names, kinds, the owner's permissions, contents and link targets."""
    digest, unreadable, first, entries, size = hashlib.sha256(), 0, b"", 0, 0
    try:
        for entry in walk_tree(root, RESERVED):
            entries, size = entries + 1, size + (entry.info.st_size if entry.kind == stat.S_IFREG else 0)
            if size > MAX_BYTES or entries > MAX_ENTRIES:
                limit = f"more than {MAX_BYTES >> 30} GiB, or {MAX_ENTRIES} files and folders"
                raise SubmissionError(f"{root}: {limit}; leave out what is no source")
            if not entry.readable:
                unreadable, first = unreadable + 1, first or entry.path
            for part in _digested(entry):
                digest.update(len(part).to_bytes(8, "big") + part)
    except OSError as error:
        kind = InfrastructureError if error.errno in MACHINE_ERRORS else SubmissionError
        raise kind(f"{root}: cannot be read to its end: {error.strerror}") from error
    return SubmissionTree(digest.hexdigest(), unreadable, os.fsdecode(first))


def _digested(entry: TreeEntry) -> list[bytes]:
    path, allowed = b"/" + entry.path, b"%o" % (entry.info.st_mode & 0o700)
    if entry.kind == stat.S_IFDIR:
        return [b"dir", path, allowed, *([] if entry.readable else [b"unreadable", path])]
    if entry.kind == stat.S_IFREG:
        content = hashlib.sha256()
        for part in entry.content():
            content.update(part)
        return [b"file", path, allowed, content.digest() if entry.readable else b"unreadable"]
    if entry.kind == stat.S_IFLNK:
        return [b"link", path, entry.target()]
    return [b"special", path, str(entry.kind).encode()]


@dataclass(slots=True)
class TreeSummary:
    entries: int = 0
    size: int = 0
    checksum: int = 0
    """Checksum over kinds, names and contents, independent of their order."""

    unreadable: bool = field(default=False, compare=False)
    """Whether the mode of a file or folder in it keeps its owner from reading it."""

    @property
    def space(self) -> int:
        """Bytes that it takes at most where files are stored in pages."""
        return self.size + 2 * PAGE * self.entries


def summarize(root: Path, max_size: int) -> TreeSummary:
    """The summary of a workspace, as `slopbox` computes it when it copies the workspace.

    `max_size` bounds the bytes, also those of holes, before any of them is read.
    """
    summary = TreeSummary()
    for entry in walk_tree(root, RESERVED):
        if entry.kind not in KINDS:
            continue
        summary.size += entry.size
        if summary.size > max_size:
            raise SubmissionError(
                f"{root}: larger than {max_size} bytes, and in containers it is in memory; use -e local"
            )
        if entry.kind in (stat.S_IFREG, stat.S_IFDIR):
            summary.unreadable |= not (entry.readable and entry.info.st_mode & stat.S_IRUSR)
        crc = zlib.crc32(KINDS[entry.kind] + struct.pack("<I", entry.path.count(b"/")) + entry.name)
        for part in [entry.target()] if entry.kind == stat.S_IFLNK else entry.content():
            crc = zlib.crc32(part, crc)
        summary.entries += 1
        summary.checksum = (summary.checksum + crc) % 2**64
    return summary
