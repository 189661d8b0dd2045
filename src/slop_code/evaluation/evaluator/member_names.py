"""Names of the members of a submission's archive: relative, unique, and with links that stay in the folder."""

from __future__ import annotations

import os
import tarfile
from typing import TYPE_CHECKING

from slop_code._arguments import MAX_NAME, MAX_PATH, MAX_SHOWN
from slop_code.errors import SubmissionError
from slop_code.execution.submission import MAX_DEPTH, MAX_ENTRIES

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_LINKS = 40
"""Symbolic links that Linux follows on one path."""

FILE_TYPES = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE)


class MemberNames:
    """Names of the members so far: none twice, none in a file, none outside of the folder."""

    def __init__(self) -> None:
        self._folders: dict[tuple[str, ...], bool] = {(): False}
        """By folder: whether it is a member itself, and not only the folder of others."""

        self._others: set[tuple[str, ...]] = set()
        self._links: dict[tuple[str, ...], tuple[str, str]] = {}
        """Name and target of each symbolic link."""

    def add(self, member: tarfile.TarInfo) -> tuple[str, ...]:
        """The parts of its name, with all that can be checked before the last member is known."""
        name = member.name
        _check_kind(member)
        parts = name_parts(name)
        if not parts and not member.isdir():
            raise refused_member(name, "it is an empty name")
        if parts in self._others or self._folders.get(parts) or (parts in self._folders and not member.isdir()):
            raise refused_member(name, "there are two of this name")
        for depth in range(len(parts)):
            if parts[:depth] in self._others:
                raise refused_member(name, f"{_shown('/'.join(parts[:depth]))} is no folder")
            self._folders.setdefault(parts[:depth], False)
        if member.isdir():
            self._folders[parts] = True
        else:
            self._others.add(parts)
        if len(self._folders) + len(self._others) > MAX_ENTRIES:
            raise refused_member(name, f"there are more than {MAX_ENTRIES} files and folders with it")
        if member.issym():
            self._links[parts] = name, _checked_target(name, member.linkname)
        return parts

    def check_links(self) -> None:
        """Once every member is known, as a link may lead through another one."""
        targets = {parts: target for parts, (_, target) in self._links.items()}
        for parts, (name, target) in self._links.items():
            if leads_outside(parts, targets):
                raise refused_member(name, f"the link leads outside of the folder, to {_shown(target)}")


def name_parts(name: str) -> tuple[str, ...]:
    """The parts of a relative path, without those that mean the same folder; a SubmissionError for any other."""
    if "\0" in name:
        raise refused_member(name, "the name has a NUL character")
    if name.startswith("/"):
        raise refused_member(name, "it is an absolute path")
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if ".." in parts:
        raise refused_member(name, "it leads outside of the folder")
    try:
        lengths = [len(os.fsencode(part)) for part in parts]
    except UnicodeEncodeError as error:
        raise refused_member(name, "the name has characters that cannot be encoded") from error
    if max(lengths, default=0) > MAX_NAME:
        raise refused_member(name, f"a name has more than {MAX_NAME} bytes")
    if len(parts) > MAX_DEPTH + 1:
        raise refused_member(name, f"it is nested more than {MAX_DEPTH} folders deep")
    return parts


def _check_kind(member: tarfile.TarInfo) -> None:
    if member.islnk():
        raise refused_member(member.name, "it is a hard link; pack with --hard-dereference")
    if member.type not in FILE_TYPES:
        raise refused_member(member.name, "it is neither a file, a folder nor a symbolic link")
    if member.issparse() or member.size < 0:
        raise refused_member(member.name, "it is a sparse file, or one of no size; pack without --sparse")


def _checked_target(name: str, target: str) -> str:
    if not target or "\0" in target or len(os.fsencode(target)) >= MAX_PATH:
        raise refused_member(name, "it is a link to nowhere")
    if max(len(os.fsencode(part)) for part in target.split("/")) > MAX_NAME:
        raise refused_member(name, f"it is a link to a name of more than {MAX_NAME} bytes")
    return target


def leads_outside(link: tuple[str, ...], targets: Mapping[tuple[str, ...], str]) -> bool:
    """True if a link leads out of the root. Links are followed as Linux does it. `targets`: those of all links.

    Parts that do not exist are taken for folders. A link that leads to itself leads nowhere.
    """
    here, left, followed = list(link[:-1]), [link[-1]], 0
    while left:
        part = left.pop()
        if part in ("", "."):
            continue
        if part == "..":
            if not here:
                return True
            here.pop()
            continue
        here.append(part)
        if (target := targets.get(tuple(here))) is not None:
            followed += 1
            if followed > MAX_LINKS:
                return False
            if target.startswith("/"):
                return True
            here.pop()
            left += reversed(target.split("/"))
    return False


def refused_member(name: str, fact: str) -> SubmissionError:
    return SubmissionError(f"submission: {_shown(name)}: {fact}")


def _shown(name: str) -> str:
    text = repr(name)
    return f"{text[:MAX_SHOWN]}…" if len(text) > MAX_SHOWN else text
