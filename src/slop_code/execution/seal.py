"""Whether a folder of the cache is still what was built there: one that is not is damaged, and built anew."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SEAL = ".seal"
MOST_READ = 300
MOST_BYTES = 8 << 20
"""So much is read again each time, the smallest files first: of what is larger, only the sizes are looked at."""

MOST_FILES = 10_000
"""Of more than these, nothing is said: a submission's set-up may leave any number."""


def seal(folder: Path) -> None:
    """When all is in it that will be: what comes later is not looked at."""
    files, read = sorted(itertools.islice(_files(folder), MOST_FILES)), 0
    known: dict[str, tuple[int, str | None]] = {}
    for number, (size, name) in enumerate(files):
        read += size
        with contextlib.suppress(OSError):  # what this user cannot read, no submission of his can
            known[name] = (size, _digest(folder / name) if number < MOST_READ and read <= MOST_BYTES else None)
    (folder / SEAL).write_text(_signed(json.dumps(known)))


def check_seal(folder: Path) -> None:
    """Raises ValueError or OSError for a folder that was changed, or never sealed."""
    text = (folder / SEAL).read_text()
    known = json.loads(text.partition("\n")[2])
    if _signed(json.dumps(known)) != text:
        raise ValueError("the seal is damaged")
    for name, (size, digest) in known.items():
        path = folder / name
        status = os.lstat(path)
        same = stat.S_ISREG(status.st_mode) and status.st_size == size
        if not same or (digest is not None and _digest(path) != digest):
            raise ValueError(f"{name} is damaged")


def _files(folder: Path) -> Iterator[tuple[int, str]]:
    """With their sizes; what cannot be reached is left out."""
    places = [os.fspath(folder)]
    while places:
        with contextlib.suppress(OSError), os.scandir(places.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    places.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    yield entry.stat(follow_symlinks=False).st_size, os.path.relpath(entry.path, folder)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _signed(text: str) -> str:
    return f"{hashlib.sha256(text.encode('ascii')).hexdigest()}\n{text}"
