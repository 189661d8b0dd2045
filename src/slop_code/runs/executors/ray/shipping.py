"""Problems and submissions on their way to a machine that has none of our files: packed, unpacked, compared."""

from __future__ import annotations

import io
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.errors import ConfigError, InfrastructureError, SubmissionError
from slop_code.evaluation.selection import files_in
from slop_code.execution.archive import END, FILE, FOLDER, HEADER, LINK, PIPE, SOCKET, UP, pack_end, pack_tree
from slop_code.execution.assets import copy_assets
from slop_code.execution.submission import tree_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from slop_code.evaluation.config import ProblemConfig
    from slop_code.execution.cache import Cache

LARGEST = 1 << 30
"""A tree is in memory while it travels."""

ARRIVALS = "arrivals"
CONFIG = "config.yaml"
TREE_NAME = "problem"
PERMISSIONS = 0o777
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
SPECIAL = {PIPE: stat.S_IFIFO, SOCKET: stat.S_IFSOCK}


def pack(root: Path) -> bytes:
    """Everything below it but the names that are the evaluation's own; links stay links."""
    packed = io.BytesIO()
    for part in pack_tree(root, "", users=True):
        if packed.tell() + len(part) > LARGEST:
            raise SubmissionError(
                f"{root}: more than {LARGEST >> 30} GiB, too much to be sent; leave out what is no source"
            )
        packed.write(part)
    packed.write(pack_end())
    return packed.getvalue()


def pack_problem(problem: ProblemConfig) -> tuple[str, bytes]:
    """Its digest, and what an evaluation reads of it: config.yaml, tests and assets, with links resolved."""
    with tempfile.TemporaryDirectory(prefix="slop-code-") as scratch:
        folder = Path(scratch) / "problem"
        copy_problem(problem, folder)
        return tree_digest(folder), pack(folder)


def copy_problem(problem: ProblemConfig, folder: Path) -> None:
    """At the places that config.yaml names, so that it is the same problem there."""
    folder.mkdir()
    shutil.copy(problem.path / CONFIG, folder / CONFIG)
    for name, asset in problem.static_assets.items():
        place = os.path.normpath(asset.path)
        if place.startswith(".."):
            raise ConfigError(f"{problem.path / CONFIG}: static_assets.{name}.path: write it without '..' to send it")
        (folder / asset.path).parent.mkdir(parents=True, exist_ok=True)
        copy_assets({place: problem.path / asset.path}, folder)
    for file in files_in(problem.path / "tests"):
        target = folder / "tests" / file
        if not target.exists():  # else it is an asset as well
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(problem.path / "tests" / file, target)


def arrived(cache: Cache, digest: str, fetch: Callable[[], bytes]) -> Path:
    """A problem in this machine's cache: fetched and unpacked once, whoever asks."""

    def build(folder: Path) -> None:
        unpack(fetch(), folder / TREE_NAME, digest)

    def load(folder: Path) -> Path:
        if tree_digest(folder / TREE_NAME) != digest:
            raise ValueError("not what was sent")
        return folder / TREE_NAME

    return cache.load_or_build(ARRIVALS, digest, build, load)


def unpack(packed: bytes, folder: Path, digest: str) -> None:
    """Into a new folder, by descriptors, so that no path is too long; what it comes to has to have that digest."""
    folder.mkdir()
    entered = [(os.open(folder, FOLDER_FLAGS), 0o700)]
    try:
        for kind, mode, mtime, name, content in _records(packed):
            here = entered[-1][0]
            if kind == FOLDER:
                os.mkdir(name, 0o700, dir_fd=here)
                entered.append((os.open(name, FOLDER_FLAGS, dir_fd=here), mode))
            elif kind == UP:
                os.fchmod(*entered[-1])
                os.close(entered.pop()[0])
            elif kind == FILE:
                _write(name, here, content, mode, mtime)
            elif kind == LINK:
                os.symlink(bytes(content), name, dir_fd=here)
            elif kind in SPECIAL:
                os.mknod(name, SPECIAL[kind] | mode, dir_fd=here)
    finally:
        for descriptor, _mode in entered:
            os.close(descriptor)
    if tree_digest(folder) != digest:
        raise InfrastructureError("the tree that was sent is not the one that was planned; did it change since?")


def _records(packed: bytes) -> Iterator[tuple[int, int, int, bytes, memoryview]]:
    """Kind, permissions, time, name and content of each."""
    view, place = memoryview(packed), 0
    while True:
        kind, _, _, mode, length, _, size, mtime = HEADER.unpack_from(view, place)
        start = place + HEADER.size + length
        name, place = bytes(view[start - length : start]), start + size
        if kind == END:
            return
        yield kind, mode & PERMISSIONS, mtime, name, view[start:place]


def _write(name: bytes, folder: int, content: memoryview, mode: int, mtime: int) -> None:
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fchmod(descriptor, mode)
        os.utime(descriptor, ns=(mtime, mtime))
