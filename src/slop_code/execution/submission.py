"""The submission as a tree of files: a walk by descriptors, its digest, and a summary that `slopbox` makes too."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import struct
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from slop_code._io import unreadable_text
from slop_code.errors import InfrastructureError, SubmissionError, SubmissionSetupError, UsageError
from slop_code.execution.process import run
from slop_code.execution.sandbox import REPORTS_DIR, TESTS_DIR

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

MAX_DEPTH = 400
"""Nested folders of a tree; `copy_tree.c` has two descriptors open for each of them."""

UNUSABLE = {errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL}
"""Errors that whoever made a folder can cause; others, such as those of a disk, are failures of the machine."""

CHUNK = 1 << 20
HEAD_BYTES = 8_000
PAGE = 4096
MAX_BYTES = 16 << 30
"""Bytes of all files together, holes included: reading more takes too long."""

MAX_ENTRIES = 1_000_000
MAX_COPIED_PATH = 3000
"""Bytes of a path in a tree that is copied by paths; with the folder that it is in, the system takes 4096."""

COPY_S = 600
RESERVED = (TESTS_DIR, REPORTS_DIR)
"""Names that the evaluation uses in the workspace; a submission's own files of these names are ignored."""

KINDS = {stat.S_IFREG: b"F", stat.S_IFDIR: b"D", stat.S_IFLNK: b"L", stat.S_IFIFO: b"P", stat.S_IFSOCK: b"S"}
"""The letters that `copy_tree.c` puts into its checksum; devices are not copied."""


class TreeLimitError(UsageError):
    """A tree beyond the limits. A submission's own fault, and a verdict; wrong use where it is a problem's."""

    def __init__(self, root: Path, fact: str) -> None:
        super().__init__(f"{root}: {fact}")
        self.fact = fact


def open_submission(path: Path) -> Path:
    """The absolute path of the submission's folder; a SubmissionError if it is none, or may not be read."""
    try:
        resolved = path.resolve(strict=True)
        is_closed = _is_closed(resolved)
    except (NotADirectoryError, FileNotFoundError) as error:
        fact = "not a folder" if isinstance(error, NotADirectoryError) else "there is no such folder"
        raise SubmissionError(f"{path}: {fact}; give the folder that holds the submission's files") from None
    except OSError as error:
        kind = SubmissionError if error.errno in UNUSABLE else InfrastructureError
        raise kind(unreadable_text(error, path)) from error
    except RuntimeError as error:  # before 3.13, a loop of links
        raise SubmissionError(f"{path}: cannot be read: {error}; remove the loop of links") from error
    if is_closed:
        raise SubmissionError(f"{path}: this user can read none of its files; let this user read them")
    return resolved


def _is_closed(folder: Path) -> bool:
    """True if this user can read no file directly in the folder, though the owners of all can: root copied it.

    A single file of this kind may be the submission's own doing, which must not cancel a bad score.
    """
    has_files = False
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                has_files = True
                is_readable = os.access(entry.path, os.R_OK, effective_ids=True)
                if is_readable or not entry.stat(follow_symlinks=False).st_mode & stat.S_IRUSR:
                    return False
    return has_files


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

    def is_binary(self) -> bool:
        """Whether there is a NUL byte within the first bytes of a file, as for git."""
        return self.descriptor is not None and b"\0" in os.pread(self.descriptor, HEAD_BYTES, 0)

    def target(self) -> bytes:
        return os.readlink(self.name, dir_fd=self.folder)


def walk_tree(root: Path, without: tuple[str, ...] = (), pruned: frozenset[bytes] = frozenset()) -> Iterator[TreeEntry]:
    """Every entry of a folder, sorted, folders before what is in them.

    `without` are names at the top to leave out, `pruned` names of folders to leave out wherever they are.
    Links are not followed, and paths are never opened as a whole. However deep the tree is, at most three descriptors
    are open: many walks at once must not exhaust them. Raises TreeLimitError for a tree that is too deep.
    """
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    skipped = {os.fsencode(name) for name in without}
    levels = [_Level.of(folder, b"")]
    try:
        while levels:
            prefix, names = levels[-1].prefix, levels[-1].names
            if not names:
                levels.pop()
                folder = _enter(folder, _parent(folder, levels[-1])) if levels else folder
                continue
            path = prefix + (name := names.pop())
            if path in skipped:
                continue
            if path.count(b"/") > MAX_DEPTH:
                raise TreeLimitError(root, f"the tree has folders nested more than {MAX_DEPTH} deep")
            info = os.stat(name, dir_fd=folder, follow_symlinks=False)
            is_folder = stat.S_ISDIR(info.st_mode)
            if is_folder and name in pruned:
                continue
            with _opened(name, folder, info.st_mode) as descriptor:
                yield TreeEntry(folder, path, info, descriptor)
                if is_folder and descriptor is not None:
                    folder = _enter(folder, os.dup(descriptor))
                    levels.append(_Level.of(folder, path + b"/"))
    finally:
        os.close(folder)


@dataclass(frozen=True, slots=True)
class _Level:
    """A folder of the walk between the root and the current one."""

    prefix: bytes
    names: list[bytes]
    """Those that are left, in reverse order."""

    identity: tuple[int, int]

    @classmethod
    def of(cls, folder: int, prefix: bytes) -> _Level:
        names = sorted((os.fsencode(name) for name in os.listdir(folder)), reverse=True)
        return cls(prefix, names, _identity(folder))


def _identity(descriptor: int) -> tuple[int, int]:
    info = os.fstat(descriptor)
    return info.st_dev, info.st_ino


def _enter(left: int, entered: int) -> int:
    os.close(left)
    return entered


def _parent(folder: int, level: _Level) -> int:
    parent = os.open("..", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    if _identity(parent) != level.identity:
        os.close(parent)
        raise InfrastructureError("a folder was moved while it was read; evaluate it when nothing writes to it")
    return parent


@contextlib.contextmanager
def _opened(name: bytes, folder: int, mode: int) -> Iterator[int | None]:
    """None for what this user may not read, and for what has no content."""
    descriptor = None
    try:
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            with contextlib.suppress(PermissionError):
                descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        if stat.S_ISDIR(mode) and descriptor is not None and not _is_searchable(descriptor):
            os.close(descriptor)
            descriptor = None
        yield descriptor
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _is_searchable(folder: int) -> bool:
    try:
        os.stat(".", dir_fd=folder)
    except PermissionError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class SubmissionTree:
    digest: str
    unreadable: int = 0
    """Number of files and folders that this user cannot read."""

    first_unreadable: str = ""
    """The path of the first of them."""

    over_limit: str | None = None
    """The limit that the tree exceeds, which is the submission's fault. The digest is then one of the part that was
    read and of this limit."""


def tree_digest(root: Path) -> str:
    return read_tree(root).digest


def read_tree(root: Path) -> SubmissionTree:
    """SHA-256 over names, kinds, the owner's permissions, contents and link targets.

    Every error is one of the machine, or of what changes the tree meanwhile: an InfrastructureError.
    """
    digest, unreadable, first, over_limit = hashlib.sha256(), 0, b"", None
    try:
        for entry in _within_limits(root, walk_tree(root, RESERVED)):
            if not entry.readable:
                unreadable, first = unreadable + 1, first or entry.path
            for part in _digested(entry):
                digest.update(len(part).to_bytes(8, "big") + part)
    except TreeLimitError as error:
        over_limit = error.fact
        digest.update(b"over limit" + over_limit.encode())
    except (InfrastructureError, OSError) as error:
        raise InfrastructureError(f"{root}: cannot be read to its end: {getattr(error, 'strerror', error)}") from error
    return SubmissionTree(digest.hexdigest(), unreadable, os.fsdecode(first), over_limit)


def _within_limits(root: Path, entries: Iterable[TreeEntry]) -> Iterator[TreeEntry]:
    size = 0
    for count, entry in enumerate(entries, start=1):
        size += entry.info.st_size if entry.kind == stat.S_IFREG else 0
        if size > MAX_BYTES:
            raise TreeLimitError(root, f"the tree has more than {MAX_BYTES >> 30} GiB, including holes in files")
        if count > MAX_ENTRIES:
            raise TreeLimitError(root, f"the tree has more than {MAX_ENTRIES} files and folders")
        yield entry


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


def copy_small_tree(source: Path, target: Path, max_bytes: int, max_entries: int) -> bool:
    """Whether the tree was copied: it is small, and has only files, folders and links that a copy shows as they are.

    Otherwise a part of it may have been copied.
    """
    size, folders = 0, [(os.fsencode(target), os.stat(source))]
    target.mkdir()
    for count, entry in enumerate(walk_tree(source, RESERVED), start=1):
        size += entry.size
        if size > max_bytes or count > max_entries or not _is_plain(entry):
            return False
        path = os.path.join(os.fsencode(target), entry.path)
        if entry.kind == stat.S_IFDIR:
            os.mkdir(path, 0o700)
            folders.append((path, entry.info))
        elif entry.kind == stat.S_IFLNK:
            os.symlink(entry.target(), path)
            _copy_times(path, entry.info)
        else:
            with open(path, "xb") as file:
                file.writelines(entry.content())
            _copy_metadata(path, entry.info)
    for path, info in reversed(folders):  # a folder's time changes with what is made in it
        _copy_metadata(path, info)
    return True


def copy_whole_tree(source: Path, target: Path, scratch: Path, *options: str) -> None:
    """Copy a tree with cp: links as links, pipes as pipes, names of any bytes. `options`: more options of cp."""
    argv = ["cp", "-a", *options, "--", f"{source}/.", str(target)]
    variables = {"PATH": os.environ.get("PATH", os.defpath)}
    done = run(argv, env=variables, log=scratch / "copy.log", timeout=COPY_S)
    if done.exit_code is None:
        raise InfrastructureError(f"{source}: cannot be copied to {target} within {COPY_S} s; try again")
    if done.exit_code != 0:
        raise InfrastructureError(f"{source}: cannot be copied to {target}: {done.output.strip()}")


def _is_plain(entry: TreeEntry) -> bool:
    info, is_link = entry.info, entry.kind == stat.S_IFLNK
    own = (info.st_uid, info.st_gid) == (os.geteuid(), os.getegid()) and (is_link or info.st_mode & 0o7000 == 0)
    single = info.st_nlink == 1 or entry.kind == stat.S_IFDIR
    short = len(entry.path) <= MAX_COPIED_PATH
    return own and single and short and entry.readable and entry.kind in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)


def _copy_metadata(path: bytes, info: os.stat_result) -> None:
    os.chmod(path, info.st_mode & 0o777)
    _copy_times(path, info)


def _copy_times(path: bytes, info: os.stat_result) -> None:
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns), follow_symlinks=False)


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
            limit = f"more than {max_size >> 30} GiB, including holes in files"
            raise SubmissionSetupError(f"the tree has {limit}, and in containers it is in memory")
        if entry.kind in (stat.S_IFREG, stat.S_IFDIR):
            summary.unreadable |= not (entry.readable and entry.info.st_mode & stat.S_IRUSR)
        crc = zlib.crc32(KINDS[entry.kind] + struct.pack("<I", entry.path.count(b"/")) + entry.name)
        for part in [entry.target()] if entry.kind == stat.S_IFLNK else entry.content():
            crc = zlib.crc32(part, crc)
        summary.entries += 1
        summary.checksum = (summary.checksum + crc) % 2**64
    return summary
