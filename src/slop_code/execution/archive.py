"""Trees on a stream, as `slopbox` packs and unpacks them: how files get into a container and out of it.

A record is a header, a name and content; folders are entered and left, so that no path is ever too long.
"""

from __future__ import annotations

import contextlib
import os
import stat
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.errors import InfrastructureError, SubmissionError
from slop_code.execution.submission import DEEPEST, RESERVED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Read = Callable[[int], bytes]

HEADER = struct.Struct("<BBHIIIQq")
CHUNK = 1 << 18
PAGE = 4096
LARGEST_ANSWER = 4 << 30
USERS = 1
TREE, FOLDER, UP, FILE, LINK, PIPE, SOCKET, END = b"TDUFLPSE"


@dataclass(slots=True)
class Measure:
    entries: int = 0
    size: int = 0
    sum: int = 0
    """Over kinds, names and contents, in whatever order: tells one tree from another."""

    closed: bool = field(default=False, compare=False)
    """Whether there is something in it that its owner may not read."""

    @property
    def space(self) -> int:
        """What it takes at most where files are kept in pages."""
        return self.size + 2 * PAGE * self.entries


def pack_tree(source: Path, place: str, *, users: bool = False) -> Iterator[bytes]:
    """A folder, or a single file, that is to appear at `place`; what is the user's leaves out the reserved names."""
    if not source.is_dir():
        folder, _, name = place.rpartition("/")
        yield _record(TREE, folder.encode(), flags=0)
        yield from _pack_file(None, os.fsencode(source), name.encode(), source.stat())
        return
    yield _record(TREE, os.fsencode(place), flags=USERS if users else 0)
    descriptor = os.open(source, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield from _pack_folder(descriptor, RESERVED if users else ())
    finally:
        os.close(descriptor)


def pack_text(text: str, place: str) -> Iterator[bytes]:
    folder, _, name = place.rpartition("/")
    content = text.encode()
    yield _record(TREE, folder.encode())
    yield _record(FILE, name.encode(), mode=0o644, size=len(content)) + content


def pack_end() -> bytes:
    return _record(END, b"")


def measure(source: Path, limit: int) -> Measure:
    """What `pack_tree` of a workspace brings, and what `slopbox` tallies when it copies one.

    `limit` bounds the bytes, also those of holes, before any of them is read.
    """
    found, depth = Measure(), 0
    records = pack_tree(source, "/", users=True)
    next(records)
    for record in records:
        kind, _flags, _zero, mode, length, _zero2, size, _mtime = HEADER.unpack_from(record)
        if kind == UP:
            depth -= 1
            continue
        found.size += size if kind == FILE else 0
        if found.size > limit:
            raise SubmissionError(
                f"{source}: larger than {limit} bytes, and in containers it is in memory; use -e local"
            )
        found.closed |= kind in (FILE, FOLDER) and not mode & 0o400
        crc = zlib.crc32(struct.pack("<BI", kind, depth) + record[HEADER.size :])
        left = size - (len(record) - HEADER.size - length)
        while left > 0:
            part = next(records)
            crc = zlib.crc32(part, crc)
            left -= len(part)
        found.entries += 1
        found.sum = (found.sum + crc) % 2**64
        depth += kind == FOLDER
    return found


def unpack(read: Read, places: Mapping[str, Path], size: int = LARGEST_ANSWER) -> int:
    """Write the trees that were asked for to their places, beside what is there; the status that stands at the end.

    Anything else (another kind of file, a name that leads elsewhere, an early end) is an infrastructure failure.
    """
    folders: list[Path] = []
    while True:
        kind, flags, zero, mode, length, zero2, content, mtime = HEADER.unpack(_exactly(read, HEADER.size))
        if kind == END and not any((flags, zero, length, zero2, content, mtime)):  # any text may begin with its letter
            return int(mode)
        name = os.fsdecode(_exactly(read, length)) if length <= PAGE else ""
        if kind == TREE and name in places:
            folders = [places[name]]
        elif kind == UP and len(folders) > 1:
            folders.pop()
        elif kind in (FILE, FOLDER) and folders and name not in ("", ".", "..") and not {"/", "\0"} & set(name):
            target = folders[-1] / name
            if kind == FOLDER:
                folders.append(_folder(target))
                continue
            size -= content
            if size < 0:
                raise InfrastructureError(
                    f"the judge's container sent more than {LARGEST_ANSWER >> 30} GB; what do the tests write?"
                )
            _write(read, target, content, mtime)
        elif kind in (LINK, PIPE, SOCKET) and content <= PAGE:
            _exactly(read, content)  # nothing of ours is one
        else:
            raise InfrastructureError("the judge's container sent what nobody asked for; that is a defect: report it")


def _folder(target: Path) -> Path:
    with contextlib.suppress(FileExistsError):
        target.mkdir()
    if not stat.S_ISDIR(target.lstat().st_mode):
        raise InfrastructureError("the judge's container sent a folder where there is something else")
    return target


def _write(read: Read, target: Path, size: int, mtime: int) -> None:
    if os.path.lexists(target):
        target = Path(os.devnull)
    with target.open("wb") as stream:
        while size > 0:
            part = _exactly(read, min(size, CHUNK))
            stream.write(part)
            size -= len(part)
    if target != Path(os.devnull):
        os.utime(target, ns=(mtime, mtime))


def _exactly(read: Read, size: int) -> bytes:
    data = read(size)
    if len(data) < size:
        raise EOFError
    return data


def _record(kind: int, name: bytes, *, flags: int = 0, mode: int = 0, size: int = 0, mtime: int = 0) -> bytes:
    return HEADER.pack(kind, flags, 0, mode, len(name), 0, size, mtime) + name


def _entries(folder: int, without: tuple[str, ...]) -> Iterator[tuple[bytes, os.stat_result]]:
    for name in sorted(os.listdir(folder)):
        if name not in without:
            yield os.fsencode(name), os.stat(name, dir_fd=folder, follow_symlinks=False)


def _pack_folder(folder: int, without: tuple[str, ...] = (), depth: int = 0) -> Iterator[bytes]:
    if depth > DEEPEST:
        raise SubmissionError(f"folders are nested more than {DEEPEST} deep; flatten them")
    for name, info in _entries(folder, without):
        mode, kind = stat.S_IMODE(info.st_mode), stat.S_IFMT(info.st_mode)
        if kind == stat.S_IFREG:
            yield from _pack_file(folder, name, name, info)
        elif kind == stat.S_IFDIR:
            yield _record(FOLDER, name, mode=mode)
            inner = _open(name, folder, os.O_DIRECTORY)
            if inner is not None:
                try:
                    yield from _pack_folder(inner, depth=depth + 1)
                finally:
                    os.close(inner)
            yield _record(UP, b"")
        elif kind == stat.S_IFLNK:
            target = os.readlink(name, dir_fd=folder)
            yield _record(LINK, name, size=len(target)) + target
        elif kind in (stat.S_IFIFO, stat.S_IFSOCK):
            yield _record(PIPE if kind == stat.S_IFIFO else SOCKET, name, mode=mode)


def _pack_file(folder: int | None, path: bytes, name: bytes, info: os.stat_result) -> Iterator[bytes]:
    """As many bytes as are announced, whatever becomes of the file meanwhile; none of one that may not be read."""
    descriptor = _open(path, folder, 0)
    size = info.st_size if descriptor is not None else 0
    mode = stat.S_IMODE(info.st_mode) if descriptor is not None else 0
    yield _record(FILE, name, mode=mode, size=size, mtime=info.st_mtime_ns)
    if descriptor is None:
        return
    with os.fdopen(descriptor, "rb", buffering=0) as stream:
        while size > 0:
            part = stream.read(min(size, CHUNK)) or b"\0" * min(size, CHUNK)
            yield part
            size -= len(part)


def _open(name: bytes, folder: int | None, flags: int) -> int | None:
    """None: this user may not read it, and so the subject cannot either."""
    try:
        return os.open(name, flags | os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except PermissionError:
        return None
