"""Trees written from the members of an archive, by descriptors and through no link."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from typing import IO, TYPE_CHECKING

from slop_code.errors import InfrastructureError
from slop_code.execution.cancellation import check_cancelled
from slop_code.execution.submission import CHUNK

if TYPE_CHECKING:
    import tarfile
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    TreeMember = tuple[tuple[str, ...], tarfile.TarInfo, Iterator[bytes] | None]
    """The parts of its path in the tree, the member and, of a file, its content."""

SOCKET = {"SCHILY.filetype": "socket"}
"""Tar has no sockets: they travel as pipes with an attribute, as star(1) has it."""

FOLDER_MODE = 0o755
ZEROS = bytes(CHUNK)
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class ArchiveError(InfrastructureError):
    """An archive that is damaged, or has what nobody should have put into it."""

    def __init__(self, fact: str) -> None:
        super().__init__(f"the archive that was sent has {fact}")
        self.fact = fact


def write_tree(members: Iterable[TreeMember], folder: Path) -> None:
    """Make `folder` with these members, whose names, kinds and sizes the caller has checked.

    Folders that are no members are made as well, and the first of two files with one name is kept. `linkname` of a hard
    link is a path in the tree. Modes of folders are set last, as a mode may forbid to write into the folder.
    """
    folder.mkdir()
    modes: dict[tuple[str, ...], int] = {(): FOLDER_MODE}
    for parts, member, content in members:
        check_cancelled()
        if member.isdir():
            with open_folder(folder, parts, make=True):
                modes[parts] = member.mode & 0o777
            continue
        with open_folder(folder, parts[:-1], make=True) as parent, contextlib.suppress(FileExistsError):
            if member.islnk():
                _link(folder, member.linkname.split("/"), parts[-1], parent)
            else:
                restore_member(member, content, parts[-1], parent, mode=member.mode & 0o777)
    for parts in sorted(modes, key=len, reverse=True):
        with open_folder(folder, parts) as descriptor:
            os.fchmod(descriptor, modes[parts])


def _link(root: Path, source: Sequence[str], name: str, folder: int) -> None:
    """A hard link to what the tree has; to a file that it does not have, or to a folder, none is made."""
    with open_folder(root, source[:-1]) as origin, contextlib.suppress(FileNotFoundError, PermissionError):
        os.link(source[-1], name, src_dir_fd=origin, dst_dir_fd=folder, follow_symlinks=False)


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
                    os.mkdir(part, FOLDER_MODE, dir_fd=descriptor)
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
            _write_with_holes(stream, content)
            os.fchmod(stream.fileno(), mode)
            os.utime(stream.fileno(), ns=(_mtime(member), _mtime(member)))
    elif member.isdir():
        os.mkdir(name, mode, dir_fd=folder)
    elif member.issym():
        os.symlink(member.linkname, name, dir_fd=folder)
    else:
        is_socket = SOCKET.items() <= member.pax_headers.items()
        os.mknod(name, (stat.S_IFSOCK if is_socket else stat.S_IFIFO) | mode, dir_fd=folder)


def _write_with_holes(stream: IO[bytes], content: Iterator[bytes]) -> None:
    """Zeros take no room on the disk, as an archive may have any number of them."""
    for part in content:
        if part == ZEROS[: len(part)]:
            stream.seek(len(part), os.SEEK_CUR)
        else:
            stream.write(part)
    stream.truncate()
    stream.flush()


def _mtime(member: tarfile.TarInfo) -> int:
    """Modification time in nanoseconds."""
    text = member.pax_headers.get("mtime") or str(member.mtime)
    match = re.fullmatch(r"(-?)([0-9]{1,12})(?:\.([0-9]{1,9}))?", text)
    if match is None:
        raise ArchiveError(f"{member.name!r} with a time that is none")
    nanoseconds = int(match[2]) * 10**9 + int((match[3] or "0").ljust(9, "0"))
    return -nanoseconds if match[1] else nanoseconds
