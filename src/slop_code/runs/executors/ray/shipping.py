"""Problems and submissions as tar archives for machines without a shared file system, checked by digest."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.errors import ConfigError, InfrastructureError
from slop_code.evaluation.selection import files_in
from slop_code.execution.archive import pack_end, pack_tree, unpack_tree
from slop_code.execution.assets import copy_assets
from slop_code.execution.submission import RESERVED, TreeLimitError, tree_digest

if TYPE_CHECKING:
    from collections.abc import Callable

    from slop_code.evaluation.config import ProblemConfig
    from slop_code.execution.cache import Cache

MAX_TREE_SIZE = 1 << 30
"""Bytes: a tree is in memory while it is sent."""

ARRIVALS = "arrivals"
CONFIG = "config.yaml"
TREE_NAME = "problem"


def pack(root: Path) -> bytes:
    """The whole tree without the names that are reserved for the evaluation. Links stay links.

    Raises TreeLimitError for a tree that cannot be sent.
    """
    packed = io.BytesIO()
    for part in pack_tree(root, TREE_NAME, owner=(0, 0), without=RESERVED):
        if packed.tell() + len(part) > MAX_TREE_SIZE:
            limit = f"more than {MAX_TREE_SIZE >> 30} GiB, including holes in files"
            raise TreeLimitError(root, f"the tree has {limit}, too large to be sent to another machine")
        packed.write(part)
    packed.write(pack_end())
    return packed.getvalue()


def pack_problem(problem: ProblemConfig) -> tuple[str, bytes]:
    """Its digest, and what an evaluation reads of it: config.yaml, tests and assets, with links resolved."""
    with tempfile.TemporaryDirectory(prefix="slop-code-") as scratch:
        folder = Path(scratch) / "problem"
        copy_problem(problem, folder)
        try:
            return tree_digest(folder), pack(folder)
        except TreeLimitError as error:
            raise ConfigError(f"{problem.path}: config.yaml, tests and assets cannot be sent: {error.fact}") from error


def copy_problem(problem: ProblemConfig, folder: Path) -> None:
    """Copy to the paths that config.yaml names, so that it is the same problem there."""
    folder.mkdir()
    shutil.copy(problem.path / CONFIG, folder / CONFIG)
    for name, asset in problem.static_assets.items():
        path = os.path.normpath(asset.path)
        if path.startswith(".."):
            raise ConfigError(f"{problem.path / CONFIG}: static_assets.{name}.path: write it without '..' to send it")
        (folder / asset.path).parent.mkdir(parents=True, exist_ok=True)
        copy_assets({path: problem.path / asset.path}, folder)
    for file in files_in(problem.path / "tests"):
        target = folder / "tests" / file
        if not target.exists():  # else it is an asset as well
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(problem.path / "tests" / file, target)


def received_problem(cache: Cache, digest: str, fetch: Callable[[], bytes]) -> Path:
    """The problem in the cache of this machine; it is fetched and unpacked once."""

    def build(folder: Path) -> None:
        unpack(fetch(), folder / TREE_NAME, digest)

    def load(folder: Path) -> Path:
        if not (folder / TREE_NAME).is_dir() or tree_digest(folder / TREE_NAME) != digest:
            raise ValueError("not the tree that was sent")
        return folder / TREE_NAME

    return cache.load_or_build(ARRIVALS, digest, build, load)


def unpack(packed: bytes, folder: Path, digest: str) -> None:
    """Unpack into a new folder, whose digest must be `digest`."""
    with contextlib.suppress(EOFError):  # an archive that breaks off has another digest
        unpack_tree(io.BytesIO(packed), folder)
    if tree_digest(folder) != digest:
        raise InfrastructureError("the tree that was sent is not the one that was planned; did it change since?")
