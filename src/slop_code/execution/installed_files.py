"""The files of the judge's own environment, which uv keeps in its cache: whether they are what was installed."""

from __future__ import annotations

import base64
import contextlib
import csv
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.execution.cache import DAMAGE_ERRORS, Cache, file_lock, remove_tree
from slop_code.execution.manifest import check_manifest, write_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator

ARCHIVES = "archive-v0"
"""Where uv keeps wheels unpacked, and the environments that uvx has made of them."""

MANIFESTS = "installed"


@contextlib.contextmanager
def damage_removed(cache: Cache) -> Iterator[None]:
    """While this lasts uv makes environments, and finds nothing damaged to make them of."""
    with file_lock(cache.root / ".installed.lock"):
        remove_damaged(cache)
        yield


def record_installed(cache: Cache, place: Path) -> str | None:
    """The name by which to ask for an environment that uv has made; None for one elsewhere, as in a container."""
    if place.parent != cache.uv / ARCHIVES:
        return None
    if not _is_sound(cache, place.name):
        (cache.uv / MANIFESTS).mkdir(exist_ok=True)
        write_manifest(place, cache.uv / MANIFESTS / place.name)
    return place.name


def check_installed(cache: Cache, name: str) -> None:
    """Raises ValueError or OSError unless all of its files are there as they were, and no others.

    They are looked at, not read: sizes, times and modes of some thousand files take a hundredth of a second.
    """
    check_manifest(cache.uv / ARCHIVES / name, cache.uv / MANIFESTS / name, reread=False)


def remove_damaged(cache: Cache) -> None:
    """Environments that are not as they were sealed, and wheels that are not what they say of themselves."""
    for place in sorted((cache.uv / ARCHIVES).glob("*/")):
        sound = _is_sound(cache, place.name) if (place / "pyvenv.cfg").exists() else matches_record(place)
        if not sound:
            remove_tree(place)
            (cache.uv / MANIFESTS / place.name).unlink(missing_ok=True)


def _is_sound(cache: Cache, name: str) -> bool:
    """One that nobody sealed is of a builder that was killed: what became of it since, nobody knows."""
    try:
        check_installed(cache, name)
    except DAMAGE_ERRORS:
        return False
    return True


def matches_record(wheel: Path) -> bool:
    """Whether an unpacked wheel has the files of its RECORD, with the digests that stand there, and no others."""
    if not any(wheel.glob("*.dist-info")):
        return True  # no wheel: of what else uv keeps there, nothing is known
    there = {path for path in wheel.rglob("*") if not path.is_dir()}
    try:
        for record in wheel.glob("*.dist-info/RECORD"):
            there.discard(record)
            for name, digest, *_ in csv.reader(record.read_text().splitlines()):
                path = Path(os.path.normpath(wheel / name))
                if digest and _digest(path, digest.partition("=")[0]) != digest:
                    return False
                there.discard(path)
    except DAMAGE_ERRORS:
        return False
    return not there


def _digest(path: Path, kind: str) -> str:
    found = hashlib.new(kind, path.read_bytes()).digest()
    return f"{kind}={base64.urlsafe_b64encode(found).decode().rstrip('=')}"
