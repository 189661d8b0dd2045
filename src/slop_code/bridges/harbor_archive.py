"""Workspaces of agents as tar streams of a container engine, unpacked to a tree that holds nothing but the agent's.

The engine packs what the agent left, so that every name, link and size is hostile. Links are restored as they are, and
nothing is written through one. Unpacking stops just beyond a limit of submissions, so that the evaluation reports the
limit in its verdict. Members that are left out count towards limits of the same size; an archive beyond those is
refused.
"""

from __future__ import annotations

import tarfile
from itertools import repeat
from typing import TYPE_CHECKING

from slop_code.execution.submission import MAX_BYTES, MAX_DEPTH, MAX_ENTRIES, RESERVED
from slop_code.execution.trees.tree_writer import ZEROS, ArchiveError, write_tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from slop_code.execution.trees.tree_writer import TreeMember

    Member = tuple[tarfile.TarInfo, Iterator[bytes] | None]


class _NoFolderError(Exception):
    pass


def unpack_workspace(members: Iterable[Member], folder: Path) -> bool:
    """Make `folder` with what is below the one folder of the archive. False if the archive has no folder but a file."""
    try:
        write_tree(_within_limits(_kept(members)), folder)
    except _NoFolderError:
        return False
    return True


def _kept(members: Iterable[Member]) -> Iterator[TreeMember]:
    """Devices and reserved names are left out, as in every submission, and so are hard links to them."""
    count = size = 0
    for member, content in members:
        parts = source = _parts(member.name)
        if not parts and not member.isdir():
            raise _NoFolderError
        if member.islnk():
            source = _parts(member.linkname)
            member.linkname = "/".join(source)
        if parts and source and not {parts[0], source[0]} & {*RESERVED} and _is_kept(member):
            yield parts, member, content
        elif parts:
            count, size = count + 1, size + member.size
            if count > MAX_ENTRIES or size > MAX_BYTES:
                raise ArchiveError(f"{member.name!r}, which is not evaluated and beyond the limits of submissions")


def _within_limits(members: Iterable[TreeMember]) -> Iterator[TreeMember]:
    """Ends with the first member that exceeds a limit; one that takes no room is in its place."""
    size = 0
    for count, (parts, member, content) in enumerate(members, 1):
        size += member.size if content is not None else 0
        if len(parts) > MAX_DEPTH + 1:
            yield parts[: MAX_DEPTH + 2], _replacement(tarfile.DIRTYPE), None
            return
        if size > MAX_BYTES:
            yield parts, _replacement(tarfile.REGTYPE), repeat(ZEROS, MAX_BYTES // len(ZEROS) + 1)
            return
        if member.issparse() or member.size < 0:
            raise ArchiveError(f"{member.name!r}, a file of no known size")
        yield parts, member, content
        if count > MAX_ENTRIES:
            return


def _parts(name: str) -> tuple[str, ...]:
    """The parts of a name below the folder that was asked for."""
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if ".." in parts or "\0" in name:
        raise ArchiveError(f"the name {name!r}")
    return parts[1:]


def _is_kept(member: tarfile.TarInfo) -> bool:
    return member.isreg() or member.isdir() or member.issym() or member.isfifo() or member.islnk()


def _replacement(kind: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo()
    member.type, member.mode = kind, 0o755
    return member
