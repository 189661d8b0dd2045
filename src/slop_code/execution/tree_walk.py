"""Walk of a folder by descriptors, with a summary that tells one tree from another."""

from __future__ import annotations

import os
import stat
import struct
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from slop_code.errors import SubmissionError
from slop_code.execution.submission import MAX_DEPTH, RESERVED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHUNK = 1 << 18
PAGE = 4096
KINDS = {stat.S_IFREG: b"F", stat.S_IFDIR: b"D", stat.S_IFLNK: b"L", stat.S_IFIFO: b"P", stat.S_IFSOCK: b"S"}
"""The letters that `copy_tree.c` puts into its checksum; devices are in no tree of ours."""


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """Valid until the walk goes on, as `folder` is a descriptor of the walk's."""

    folder: int
    name: bytes
    path: str
    """Relative to the root of the walk."""

    depth: int
    info: os.stat_result
    readable: bool
    """False where this user may not read it; the subject cannot either."""

    @property
    def kind(self) -> int:
        return stat.S_IFMT(self.info.st_mode)

    @property
    def size(self) -> int:
        return self.info.st_size if self.readable and self.kind == stat.S_IFREG else 0

    def content(self) -> Iterator[bytes]:
        """As many bytes as `size`, even if the file shrinks or grows meanwhile."""
        if not self.size:
            return
        descriptor = os.open(self.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.folder)
        with os.fdopen(descriptor, "rb", buffering=0) as stream:
            left = self.size
            while left > 0:
                part = stream.read(min(left, CHUNK)) or bytes(min(left, CHUNK))
                yield part
                left -= len(part)

    def target(self) -> bytes:
        return os.readlink(self.name, dir_fd=self.folder)


def walk_tree(root: Path, without: tuple[str, ...] = ()) -> Iterator[TreeEntry]:
    """Every entry of a folder, sorted, folders before what is in them; `without` are names at the top to leave out.

    Paths are never opened as a whole: a tree may be deeper than a path may be long.
    """
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield from _walk(descriptor, "", 0, without)
    finally:
        os.close(descriptor)


def _walk(folder: int, prefix: str, depth: int, without: tuple[str, ...] = ()) -> Iterator[TreeEntry]:
    if depth > MAX_DEPTH:
        raise SubmissionError(f"folders are nested more than {MAX_DEPTH} deep; flatten them")
    for name in sorted(os.listdir(folder)):
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
        kind = stat.S_IFMT(info.st_mode)
        if name in without or kind not in KINDS:
            continue
        opened = _open(name, folder) if kind in (stat.S_IFREG, stat.S_IFDIR) else None
        readable = opened is not None or kind not in (stat.S_IFREG, stat.S_IFDIR)
        try:
            yield TreeEntry(folder, os.fsencode(name), prefix + name, depth, info, readable)
            if opened is not None and kind == stat.S_IFDIR:
                yield from _walk(opened, f"{prefix}{name}/", depth + 1)
        finally:
            if opened is not None:
                os.close(opened)


def _open(name: str, folder: int) -> int | None:
    try:
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except PermissionError:
        return None


@dataclass(slots=True)
class TreeSummary:
    entries: int = 0
    size: int = 0
    checksum: int = 0
    """Over kinds, names and contents, in whatever order."""

    unreadable: bool = field(default=False, compare=False)
    """Whether the mode of a file or folder in it keeps its owner from reading it."""

    @property
    def space(self) -> int:
        """What it takes at most where files are kept in pages."""
        return self.size + 2 * PAGE * self.entries


def summarize(root: Path, max_size: int) -> TreeSummary:
    """The summary of a workspace, as `slopbox` computes it when it copies one.

    `max_size` bounds the bytes, also those of holes, before any of them is read.
    """
    summary = TreeSummary()
    for entry in walk_tree(root, RESERVED):
        summary.size += entry.size
        if summary.size > max_size:
            raise SubmissionError(
                f"{root}: larger than {max_size} bytes, and in containers it is in memory; use -e local"
            )
        if entry.kind in (stat.S_IFREG, stat.S_IFDIR):
            summary.unreadable |= not (entry.readable and entry.info.st_mode & stat.S_IRUSR)
        crc = zlib.crc32(KINDS[entry.kind] + struct.pack("<I", entry.depth) + entry.name)
        for part in [entry.target()] if entry.kind == stat.S_IFLNK else entry.content():
            crc = zlib.crc32(part, crc)
        summary.entries += 1
        summary.checksum = (summary.checksum + crc) % 2**64
    return summary
