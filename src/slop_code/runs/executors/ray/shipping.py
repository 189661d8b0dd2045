"""Problems and submissions on their way to a machine that has none of our files: packed, unpacked, compared."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.errors import ConfigError, InfrastructureError, SubmissionError
from slop_code.evaluation.selection import files_in
from slop_code.execution.archive import pack_end, pack_tree, unpack_tree
from slop_code.execution.assets import copy_assets
from slop_code.execution.submission import RESERVED, tree_digest

if TYPE_CHECKING:
    from collections.abc import Callable

    from slop_code.evaluation.config import ProblemConfig
    from slop_code.execution.cache import Cache

LARGEST = 1 << 30
"""A tree is in memory while it travels."""

ARRIVALS = "arrivals"
CONFIG = "config.yaml"
TREE_NAME = "problem"


def pack(root: Path) -> bytes:
    """Everything below it but the names that are the evaluation's own; links stay links."""
    packed = io.BytesIO()
    for part in pack_tree(root, TREE_NAME, owner=(0, 0), without=RESERVED):
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
    """Into a new folder; what it comes to has to have that digest."""
    with contextlib.suppress(EOFError):  # an archive that breaks off has another digest
        unpack_tree(io.BytesIO(packed), folder)
    if tree_digest(folder) != digest:
        raise InfrastructureError("the tree that was sent is not the one that was planned; did it change since?")
