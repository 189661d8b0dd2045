"""Trees on a stream, as in `archive.c`: how a submission, tests and reports travel into a container and out of it."""

from __future__ import annotations

import os
import stat
import struct
import time
from binascii import crc32
from typing import NamedTuple

from slop_code.execution.helper.fallback.shared import FAILED, PATH_MAX, die, make_folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

RECORD = struct.Struct("<BBHIIIQq")  # kind, flags, 0, mode, bytes of the name, 0, bytes of content, mtime in ns
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
CHUNK = 1 << 16
USERS = 1
"""Flag of a tree: it belongs to the boxes' user, as the workspace does."""

RESERVED = (".evaluation_tests", ".scbench")
"""Names the evaluation itself puts into a workspace; a submission's own are never looked at."""

KINDS = {stat.S_IFREG: "F", stat.S_IFDIR: "D", stat.S_IFLNK: "L", stat.S_IFIFO: "P", stat.S_IFSOCK: "S"}


class Entry(NamedTuple):
    kind: str
    mode: int
    size: int
    mtime: int


def put(out: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(out, rest) :]
        except OSError as error:
            die("cannot send", error)


def get(source: int, length: int) -> bytes:
    parts: list[bytes] = []
    while length > 0:
        try:
            parts.append(os.read(source, length))
        except OSError as error:
            die("what was sent breaks off", error)
        if not parts[-1]:
            die("what was sent breaks off")
        length -= len(parts[-1])
    return b"".join(parts)


def put_record(
    out: int, kind: str, name: bytes, *, flags: int = 0, mode: int = 0, size: int = 0, mtime: int = 0
) -> None:
    put(out, RECORD.pack(ord(kind), flags, 0, mode, len(name), 0, size, mtime) + name)


def put_content(out: int, folder: int, name: str, size: int) -> None:
    """As many bytes as were announced, whatever becomes of the file meanwhile."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    try:
        while size > 0:
            try:
                data = os.read(descriptor, min(size, CHUNK))
            except OSError:
                data = b""
            data = data or bytes(min(size, CHUNK))
            put(out, data)
            size -= len(data)
    finally:
        os.close(descriptor)


def put_entry(out: int, folder: int, name: str, information: os.stat_result) -> None:
    kind = KINDS.get(stat.S_IFMT(information.st_mode))
    if kind is None:
        return
    target = os.fsencode(os.readlink(name, dir_fd=folder)) if kind == "L" else b""
    size = information.st_size if kind == "F" else len(target)
    mode = information.st_mode & 0o7777
    put_record(out, kind, os.fsencode(name), mode=mode, size=size, mtime=information.st_mtime_ns)
    put(out, target)
    if kind == "F":
        put_content(out, folder, name, size)


def enter(folder: int, name: str) -> int:
    inner = os.open(name, FOLDER, dir_fd=folder)
    os.close(folder)
    return inner


def identity(folder: int) -> tuple[int, int]:
    information = os.fstat(folder)
    return information.st_dev, information.st_ino


def walk(folder: int, skipped: Container[str] = ()) -> Iterator[tuple[int, str, os.stat_result] | None]:
    """Each entry and the folder it is in, None at the end of an inner folder. One folder is open at a time: a tree may
    be deeper than a process may have descriptors."""
    above: list[tuple[list[str], tuple[int, int]]] = []
    names = [name for name in os.listdir(folder) if name not in skipped]
    while names or above:
        if not names:
            names, there = above.pop()
            folder = enter(folder, "..")
            if identity(folder) != there:
                die("a folder was moved while it was read")
            yield None
            continue
        name = names.pop()
        try:
            information = os.stat(name, dir_fd=folder, follow_symlinks=False)
            yield folder, name, information
            if stat.S_ISDIR(information.st_mode):
                above.append((names, identity(folder)))
                folder = enter(folder, name)
                names = os.listdir(folder)
        except OSError as error:
            die(f"cannot read {name}", error)
    os.close(folder)


def open_folder(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        die(f"cannot read {path}", error)


def pack(out: int, source: str, name: str, flags: int) -> None:
    folder = open_folder(source)
    put_record(out, "T", os.fsencode(name), flags=flags)
    for found in walk(folder, RESERVED if flags & USERS else ()):
        if found is None:
            put_record(out, "U", b"")
            continue
        try:
            put_entry(out, *found)
        except OSError as error:
            die(f"cannot read {found[1]}", error)


def pack_end(out: int, status: int) -> None:
    put_record(out, "E", b"", mode=status)


class Tally:
    """`sum` tells one tree from another, in whatever order it is walked."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.entries = self.bytes = self.sum = 0

    def count(self, size: int | None, crc: int = 0) -> None:
        self.entries += 1
        self.bytes += size or 0
        self.sum = (self.sum + crc) % 2**64


copied = Tally()


class Unpacker:
    """Where in a tree the next entry belongs, and whose it is to be."""

    def __init__(self, source: int, uid: int, gid: int) -> None:
        self.source, self.uid, self.gid = source, uid, gid
        self.folder, self.depth, self.users, self.crc = -1, 0, False, 0

    def begin(self, path: str, users: bool) -> None:
        if self.folder >= 0:
            os.close(self.folder)
        self.users, self.depth = users, 0
        make_folders(path, 0o755)
        try:
            self.folder = os.open(path, FOLDER)
            if users:
                os.chown(self.folder, self.uid, self.gid)
        except OSError as error:
            die(f"cannot use {path}", error)

    def move(self, name: str, by: int) -> None:
        self.folder = enter(self.folder, name)
        self.depth += by

    def belong(self, what: int | str, entry: Entry) -> None:
        """What belongs to the user keeps its modes; what is ours, everyone may read and nobody but root may write."""
        mode = entry.mode & 0o1777 if self.users else entry.mode & 0o755 | 0o444
        if not self.users and (entry.kind == "D" or mode & 0o111):
            mode |= 0o111
        at = None if isinstance(what, int) else self.folder
        if self.users:
            os.chown(what, self.uid, self.gid, dir_fd=at, follow_symlinks=at is None)
        if entry.kind != "L":
            os.chmod(what, mode, dir_fd=at)

    def content(self, size: int) -> bytes:
        data = get(self.source, size)
        self.crc = crc32(data, self.crc)
        return data

    def make(self, name: str, entry: Entry) -> None:
        self.crc = crc32(struct.pack("<BI", ord(entry.kind), self.depth) + os.fsencode(name))
        if entry.kind == "F":
            self.make_file(name, entry)
            return
        if entry.kind == "D":
            os.mkdir(name, 0o700, dir_fd=self.folder)
            self.move(name, 1)
            self.belong(self.folder, entry)
            return
        if entry.kind == "L":
            if entry.size >= PATH_MAX:
                die("a link is too long")
            target = self.content(entry.size)
            if b"\0" in target:
                die("what was sent is no tree")
            os.symlink(os.fsdecode(target), name, dir_fd=self.folder)
        else:
            kind = stat.S_IFIFO if entry.kind == "P" else stat.S_IFSOCK
            os.mknod(name, kind | 0o600, dir_fd=self.folder)
        self.belong(name, entry)

    def make_file(self, name: str, entry: Entry) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        descriptor = os.open(name, flags, 0o600, dir_fd=self.folder)
        left = entry.size
        while left > 0:
            put(descriptor, self.content(min(left, CHUNK)))
            left -= min(left, CHUNK)
        self.belong(descriptor, entry)
        os.utime(descriptor, ns=(time.time_ns(), entry.mtime))
        os.close(descriptor)


def unpack(source: int, uid: int, gid: int) -> int:
    """The status in the end record."""
    place = Unpacker(source, uid, gid)
    while True:
        kind, flags, _, mode, length, _, size, mtime = RECORD.unpack(get(source, RECORD.size))
        if chr(kind) == "E":
            if place.folder >= 0:
                os.close(place.folder)
            return int(mode)
        if length >= PATH_MAX:
            die("a name is too long")
        name = os.fsdecode(get(source, length))
        if "\0" in name:
            die("what was sent is no tree")
        if chr(kind) == "T":
            place.begin(name, bool(flags & USERS))
            continue
        is_up = chr(kind) == "U" and place.depth > 0 and name != ".." and "/" not in name
        if place.folder < 0 or not (is_up or (chr(kind) in "FDLPS" and is_component(name))):
            die("what was sent is no tree")
        try:
            if is_up:
                place.move("..", -1)
            else:
                place.make(name, Entry(chr(kind), mode, size, mtime))
                copied.count(size if chr(kind) == "F" else None, place.crc)
        except OSError as error:
            die(f"cannot make {name}", error)


def is_component(name: str) -> bool:
    return name not in ("", ".", "..") and "/" not in name


def copy_tree(source: str, target: str, uid: int, gid: int) -> None:
    reader, writer = os.pipe()
    sender = os.fork()
    if sender == 0:
        try:
            os.close(reader)
            pack(writer, source, target, USERS)
            pack_end(writer, 0)
            os._exit(0)
        finally:
            os._exit(FAILED)
    os.close(writer)
    copied.clear()
    unpack(reader, uid, gid)
    os.close(reader)
    if os.waitpid(sender, 0)[1] != 0:
        die(f"cannot copy {source}")


def measure_main(argv: Sequence[str]) -> int:
    if len(argv) != 1:
        die("measure: one folder expected")
    tally = Tally()
    for found in walk(open_folder(argv[0])):
        if found is not None:
            tally.count(found[2].st_size if stat.S_ISREG(found[2].st_mode) else None)
    print(tally.entries, tally.bytes, flush=True)
    return 0
