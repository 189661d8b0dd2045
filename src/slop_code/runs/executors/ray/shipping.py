"""Problems and submissions as tar archives for machines without a shared file system, checked by digest."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.errors import ConfigError, InfrastructureError
from slop_code.evaluation.problem.problem_lookup import CONFIG
from slop_code.evaluation.selection import files_in
from slop_code.execution.assets import copy_assets
from slop_code.execution.submission import RESERVED, tree_digest
from slop_code.execution.trees.archive import pack_end, pack_tree, unpack_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from slop_code.evaluation.config import ProblemConfig
    from slop_code.execution.cache import Cache

BLOCK_SIZE = 64 << 20
"""Bytes of an archive that are in memory at a time, unless a file's header is longer."""

MAX_PROBLEM_SIZE = 1 << 30

ARRIVALS = "arrivals"
TREE_NAME = "problem"


def pack(root: Path) -> Iterator[bytes]:
    """Blocks of an archive of the whole tree, without the names that are reserved for the evaluation."""
    block = bytearray()
    for part in pack_tree(root, TREE_NAME, owner=(0, 0), without=RESERVED):
        block += part
        if len(block) >= BLOCK_SIZE:
            yield bytes(block)
            block.clear()
    yield bytes(block) + pack_end()


def pack_problem(problem: ProblemConfig) -> tuple[str, list[bytes]]:
    """Its digest, and what an evaluation reads of it: config.yaml, tests and assets, with links resolved."""
    with tempfile.TemporaryDirectory(prefix="slop-code-") as scratch:
        folder = Path(scratch) / "problem"
        copy_problem(problem, folder)
        size = sum(path.lstat().st_size for path in folder.rglob("*"))
        if size > MAX_PROBLEM_SIZE:
            limit = f"more than {MAX_PROBLEM_SIZE >> 20} MiB"
            raise ConfigError(
                f"{problem.path}: config.yaml, tests and assets have {limit}, too much to be sent; use smaller assets"
            )
        return tree_digest(folder), list(pack(folder))


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


def received_problem(cache: Cache, digest: str, fetch: Callable[[], Iterable[bytes]]) -> Path:
    """The problem in the cache of this machine; it is fetched and unpacked once."""

    def build(folder: Path) -> None:
        unpack(fetch(), folder / TREE_NAME, digest)

    def load(folder: Path) -> Path:
        if not (folder / TREE_NAME).is_dir() or tree_digest(folder / TREE_NAME) != digest:
            raise ValueError("not the tree that was sent")
        return folder / TREE_NAME

    return cache.load_or_build(ARRIVALS, digest, build, load)


def unpack(blocks: Iterable[bytes], folder: Path, digest: str) -> None:
    """Unpack into a new folder, whose digest must be `digest`."""
    with tempfile.SpooledTemporaryFile(BLOCK_SIZE, dir=str(folder.parent)) as packed:
        packed.writelines(blocks)
        packed.seek(0)
        with contextlib.suppress(EOFError):  # an archive that breaks off has another digest
            unpack_tree(packed, folder)
    if tree_digest(folder) != digest:
        raise InfrastructureError("the tree that was sent is not the one that was planned; did it change since?")
