"""Trees as tar streams: into a container, out of it, and to another machine.

Members are named `tree/path`, and the caller that unpacks gives the folder of each tree. In a container,
`helper/tar_reader.c` unpacks and `helper/tar_writer.c` packs.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tarfile
from tarfile import EOFHeaderError, HeaderError, ReadError  # type: ignore[attr-defined]  # typeshed lacks the first
from typing import IO, TYPE_CHECKING, Any, Self, cast

from slop_code.execution.submission import CHUNK, walk_tree
from slop_code.execution.trees.tree_writer import SOCKET, ArchiveError, open_folder, restore_member, write_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from tarfile import TarFile

    from slop_code.execution.trees.tree_writer import TreeMember

    Read = Callable[[int], bytes]
    Owner = tuple[int, int]

MAX_REPORTS_SIZE = 4 << 30
MAX_HEADER_SIZE = 1 << 18
MAX_MEMBERS = 1_000_000
MAX_NAME_BYTES = 255
ENCODING, ERRORS = "utf-8", "surrogateescape"
STATUS = "exit-status"
TYPES = {
    stat.S_IFREG: tarfile.REGTYPE, stat.S_IFDIR: tarfile.DIRTYPE, stat.S_IFLNK: tarfile.SYMTYPE,
    stat.S_IFIFO: tarfile.FIFOTYPE, stat.S_IFSOCK: tarfile.FIFOTYPE,
}  # fmt: skip


def pack_tree(source: Path, name: str, *, owner: Owner | None = None, without: tuple[str, ...] = ()) -> Iterator[bytes]:
    """A folder, or a single file, as `name` (`tree` or `tree/path`); without the end of the archive.

    With an owner everything keeps its mode. Without an owner it is root's: everyone may read it, only root may write.
    """
    if not source.is_dir():
        yield from pack_file(source.read_bytes(), name)
        return
    yield _header(_member(name, tarfile.DIRTYPE, 0o755, owner))
    for entry in walk_tree(source, without):
        if entry.kind not in TYPES:
            continue
        member = _member(
            f"{name}/{os.fsdecode(entry.path)}", TYPES[entry.kind], stat.S_IMODE(entry.info.st_mode), owner
        )
        if entry.kind == stat.S_IFREG:
            member.size = entry.size
            member.mode = member.mode if entry.readable else 0
            # As text: a float, which tarfile makes of a time otherwise, has no nanoseconds.
            member.pax_headers = {"mtime": _format_time(entry.info.st_mtime_ns)}
        elif entry.kind == stat.S_IFLNK:
            member.linkname = os.fsdecode(entry.target())
        elif entry.kind == stat.S_IFSOCK:
            member.pax_headers = SOCKET
        yield _header(member)
        yield from entry.content()
        yield bytes(-member.size % tarfile.BLOCKSIZE)


def pack_file(content: bytes, name: str) -> Iterator[bytes]:
    member = _member(name, tarfile.REGTYPE, 0o644, None)
    member.size = len(content)
    yield _header(member) + content + bytes(-member.size % tarfile.BLOCKSIZE)


def pack_end() -> bytes:
    return bytes(2 * tarfile.BLOCKSIZE)


def _member(name: str, kind: bytes, mode: int, owner: Owner | None) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type = kind
    member.uid, member.gid = owner or (0, 0)
    member.mode = mode & 0o1777
    if owner is None:
        executable = kind == tarfile.DIRTYPE or mode & 0o111
        member.mode = mode & 0o755 | (0o555 if executable else 0o444)
    return member


def _header(member: tarfile.TarInfo) -> bytes:
    return member.tobuf(tarfile.PAX_FORMAT, ENCODING, ERRORS)


def _format_time(nanoseconds: int) -> str:
    seconds, rest = divmod(abs(nanoseconds), 10**9)
    return f"{'-' if nanoseconds < 0 else ''}{seconds}.{rest:09}"


def unpack_reports(read: Read, folders: Mapping[str, Path], max_size: int = MAX_REPORTS_SIZE) -> int:
    """Write the trees of `folders` to their folders, and return the judge's wait status. Existing files are kept.

    Anything else (another kind of file, a name that leads elsewhere) is an infrastructure failure; an archive that
    ends early is an EOFError.
    """
    left = max_size
    for (tree, *parts), member, content in _members(read):
        if tree == STATUS and not parts and content is not None:
            return _status(b"".join(content) if member.size < MAX_HEADER_SIZE else b"")
        if tree not in folders or not parts or not (member.isreg() or member.isdir()):
            raise ArchiveError(f"{member.name!r}, which nobody asked for")
        left -= member.size
        if left < 0:
            raise ArchiveError(f"more than {max_size} bytes of reports; let the tests print less")
        with open_folder(folders[tree], parts[:-1]) as parent, contextlib.suppress(FileExistsError):
            restore_member(member, content, parts[-1], parent, mode=0o755 if member.isdir() else 0o644)
    raise EOFError


def unpack_tree(packed: IO[bytes], folder: Path) -> None:
    """Make `folder` with everything that `pack_tree` put into an archive, whatever its tree is called."""
    members = _members(packed.read)
    write_tree(((tuple(parts), member, content) for (_, *parts), member, content in members if parts), folder)


class _BoundedStream:
    """For tarfile, which believes what a header says of its own length: gives up after `allowed` bytes."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self.allowed = MAX_HEADER_SIZE
        self.has_ended = False

    def read(self, size: int) -> bytes:
        self.allowed -= size
        if self.allowed < 0:
            raise ArchiveError("a member whose header has no end")
        data = self._read(size)
        self.has_ended |= len(data) < size
        return data

    def content(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[bytes]:
        with self.damage():
            source = tar.extractfile(member)
            while source is not None and (part := source.read(CHUNK)):
                yield part

    @contextlib.contextmanager
    def damage(self) -> Iterator[None]:
        """Turn tarfile's errors into ours: an archive is damaged, or ends early."""
        try:
            yield
        except (tarfile.TarError, ValueError, RecursionError) as error:
            raise EOFError if self.has_ended else ArchiveError("no archive in it") from error


def read_members(read: Read) -> Iterator[tuple[tarfile.TarInfo, Iterator[bytes] | None]]:
    """Each member and, of a file, its content. The caller checks the member before it reads the content.

    An archive without its end marker is an EOFError, a damaged one an ArchiveError.
    """
    stream = _BoundedStream(read)
    source = cast(IO[bytes], stream)  # tarfile needs nothing but its `read`
    with (
        stream.damage(),
        tarfile.open(fileobj=source, mode="r|", encoding=ENCODING, errors=ERRORS, tarinfo=_StrictMember) as tar,
    ):
        while (member := tar.next()) is not None:
            cast(Any, tar).members.clear()  # it would keep every member
            stream.allowed = member.size + MAX_HEADER_SIZE
            yield member, stream.content(tar, member) if member.isreg() else None
            stream.allowed = member.size + MAX_HEADER_SIZE


class _StrictMember(tarfile.TarInfo):
    """tarfile takes a damaged header, and the end of the file, for the end of the archive; here only its marker is."""

    @classmethod
    def fromtarfile(cls, tarfile: TarFile) -> Self:
        try:
            return super().fromtarfile(tarfile)
        except EOFHeaderError:
            raise
        except HeaderError as error:
            raise ReadError(str(error)) from error


def _members(read: Read) -> Iterator[TreeMember]:
    """Each member with its path in parts and, of a file, its content; hostile members are refused."""
    names = set[tuple[str, ...]]()
    for member, content in read_members(read):
        parts = _checked(member)
        if parts in names or len(names) == MAX_MEMBERS:
            raise ArchiveError(f"{member.name!r} twice" if parts in names else "too many files")
        names.add(parts)
        yield parts, member, content


def _checked(member: tarfile.TarInfo) -> tuple[str, ...]:
    """The parts of its name; only files, folders, symbolic links and pipes, with plain names, are taken."""
    parts = tuple(member.name.split("/"))
    plain = all(part not in ("", ".", "..") and len(os.fsencode(part)) <= MAX_NAME_BYTES for part in parts)
    if not plain or "\0" in member.name + member.linkname:
        raise ArchiveError(f"the name {member.name!r}")
    if member.type not in TYPES.values() or member.issparse() or member.size < 0:
        raise ArchiveError(f"{member.name!r}, which is no file, folder, symbolic link or pipe")
    return parts


def _status(text: bytes) -> int:
    if not re.fullmatch(rb"[0-9]{1,6}", text):
        raise ArchiveError("no exit status")
    return int(text)
