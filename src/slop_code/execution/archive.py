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

from slop_code.errors import InfrastructureError
from slop_code.execution.submission import CHUNK, walk_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from tarfile import TarFile

    Read = Callable[[int], bytes]
    Owner = tuple[int, int]

MAX_REPORTS_SIZE = 4 << 30
MAX_HEADER_SIZE = 1 << 18
MAX_MEMBERS = 1_000_000
MAX_NAME_BYTES = 255
ENCODING, ERRORS = "utf-8", "surrogateescape"
STATUS = "exit-status"
SOCKET = {"SCHILY.filetype": "socket"}
"""Tar has no sockets: they travel as pipes with an attribute, as star(1) has it."""

TYPES = {
    stat.S_IFREG: tarfile.REGTYPE, stat.S_IFDIR: tarfile.DIRTYPE, stat.S_IFLNK: tarfile.SYMTYPE,
    stat.S_IFIFO: tarfile.FIFOTYPE, stat.S_IFSOCK: tarfile.FIFOTYPE,
}  # fmt: skip
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class ArchiveError(InfrastructureError):
    """An archive that is damaged, or has what nobody should have put into it."""

    def __init__(self, fact: str) -> None:
        super().__init__(f"the archive that was sent has {fact}")
        self.fact = fact


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
    for (tree, *parts), member, content in _members(read):
        if tree == STATUS and not parts and content is not None:
            return _status(b"".join(content) if member.size < MAX_HEADER_SIZE else b"")
        if tree not in folders or not parts or not (member.isreg() or member.isdir()):
            raise ArchiveError(f"{member.name!r}, which nobody asked for")
        max_size -= member.size
        if max_size < 0:
            raise ArchiveError(f"more than {MAX_REPORTS_SIZE >> 30} GB; what do the tests write?")
        with open_folder(folders[tree], parts[:-1]) as parent, contextlib.suppress(FileExistsError):
            restore_member(member, content, parts[-1], parent, mode=0o755 if member.isdir() else 0o644)
    raise EOFError


def unpack_tree(packed: IO[bytes], folder: Path) -> None:
    """Make `folder` with everything that `pack_tree` put into an archive, whatever its tree is called.

    Modes of folders are set last, as a mode may forbid to write into the folder.
    """
    folder.mkdir()
    modes: list[tuple[list[str], int]] = []
    for (_, *parts), member, content in _members(packed.read):
        if not parts:
            continue
        mode = member.mode & 0o777
        with open_folder(folder, parts[:-1]) as parent:
            restore_member(member, content, parts[-1], parent, mode=0o700 if member.isdir() else mode)
        if member.isdir():
            modes.append((parts, mode))
    for parts, mode in reversed(modes):
        with open_folder(folder, parts) as descriptor:
            os.fchmod(descriptor, mode)


@contextlib.contextmanager
def open_folder(root: Path, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """A folder below the root, reached through no link; by descriptors, as it may be deeper than a path may be long.

    `make`: folders that do not exist are made.
    """
    descriptor = os.open(root, FOLDER_FLAGS)
    try:
        for part in parts:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=descriptor)
            try:
                inner = os.open(part, FOLDER_FLAGS, dir_fd=descriptor)
            except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
                raise ArchiveError(f"something in {part!r}, which is no folder") from error
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def restore_member(
    member: tarfile.TarInfo, content: Iterator[bytes] | None, name: str, folder: int, *, mode: int
) -> None:
    if content is not None:
        with os.fdopen(os.open(name, FILE_FLAGS, 0o600, dir_fd=folder), "wb") as stream:
            stream.writelines(content)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.utime(stream.fileno(), ns=(_mtime(member), _mtime(member)))
    elif member.isdir():
        os.mkdir(name, mode, dir_fd=folder)
    elif member.issym():
        os.symlink(member.linkname, name, dir_fd=folder)
    else:
        is_socket = SOCKET.items() <= member.pax_headers.items()
        os.mknod(name, (stat.S_IFSOCK if is_socket else stat.S_IFIFO) | mode, dir_fd=folder)


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


def _members(read: Read) -> Iterator[tuple[tuple[str, ...], tarfile.TarInfo, Iterator[bytes] | None]]:
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


def _mtime(member: tarfile.TarInfo) -> int:
    """Modification time in nanoseconds."""
    text = member.pax_headers.get("mtime") or str(member.mtime)
    match = re.fullmatch(r"(-?)([0-9]{1,12})(?:\.([0-9]{1,9}))?", text)
    if match is None:
        raise ArchiveError(f"{member.name!r} with a time that is none")
    nanoseconds = int(match[2]) * 10**9 + int((match[3] or "0").ljust(9, "0"))
    return -nanoseconds if match[1] else nanoseconds
