"""Integrity of uv's cache: the judge's environment and the wheels it is made of are what was installed."""

from __future__ import annotations

import base64
import contextlib
import csv
import hashlib
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.execution.cache import DAMAGE_ERRORS, Cache, file_lock, remove_tree
from slop_code.execution.manifest import check_manifest, write_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator

logger = logging.getLogger(__name__)

ARCHIVES = "archive-v0"
"""uv's folder of unpacked wheels, and of the environments that uvx makes of them."""

MANIFESTS = "installed"


@contextlib.contextmanager
def damage_removed(cache: Cache) -> Iterator[None]:
    """Nothing damaged is in uv's cache when the block begins, and one evaluator at a time installs."""
    with file_lock(cache.root / ".installed.lock"):
        remove_damaged(cache)
        yield


def record_installed(cache: Cache, environment: Path) -> str | None:
    """The name of an environment for `check_installed`; None for an environment elsewhere, as in a container."""
    if environment.parent != cache.uv / ARCHIVES:
        return None
    if not _is_undamaged(cache, environment.name):
        (cache.uv / MANIFESTS).mkdir(exist_ok=True)
        write_manifest(environment, cache.uv / MANIFESTS / environment.name)
    return environment.name


def check_installed(cache: Cache, name: str) -> None:
    """Raise ValueError or OSError unless the environment has exactly the files that were recorded.

    Sizes, times and modes are compared, not contents: for thousands of files that takes a hundredth of a second.
    """
    check_manifest(cache.uv / ARCHIVES / name, cache.uv / MANIFESTS / name, reread=False)


def remove_damaged(cache: Cache) -> None:
    """Remove environments that differ from their manifest, and wheels that differ from their RECORD."""
    for folder in sorted((cache.uv / ARCHIVES).glob("*/")):
        is_environment = (folder / "pyvenv.cfg").exists()
        if not (_is_undamaged(cache, folder.name) if is_environment else matches_record(folder)):
            logger.info("removing a damaged folder of uv's cache: %s", folder)
            remove_tree(folder)
            (cache.uv / MANIFESTS / folder.name).unlink(missing_ok=True)


def _is_undamaged(cache: Cache, name: str) -> bool:
    """An environment without a manifest is of a killed builder, and counts as damaged."""
    try:
        check_installed(cache, name)
    except DAMAGE_ERRORS:
        return False
    return True


def matches_record(wheel: Path) -> bool:
    """Whether an unpacked wheel has the files of its RECORD, with their digests, and no others."""
    if not any(wheel.glob("*.dist-info")):
        return True  # not a wheel: nothing is known about uv's other folders
    unrecorded = {path for path in wheel.rglob("*") if not path.is_dir()}
    try:
        for record in wheel.glob("*.dist-info/RECORD"):
            unrecorded.discard(record)
            for name, digest, *_ in csv.reader(record.read_text().splitlines()):
                path = Path(os.path.normpath(wheel / name))
                if digest and _digest(path, digest.partition("=")[0]) != digest:
                    return False
                unrecorded.discard(path)
    except DAMAGE_ERRORS:
        return False
    return not unrecorded


def _digest(path: Path, algorithm: str) -> str:
    digest = hashlib.new(algorithm, path.read_bytes()).digest()
    return f"{algorithm}={base64.urlsafe_b64encode(digest).decode().rstrip('=')}"
