"""Whether a folder of the cache is still what was built there: one that is not is damaged, and built anew."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import stat
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MANIFEST = ".manifest"
COMPILED = "__pycache__"
MOST_READ = 300
MOST_BYTES = 8 << 20
"""So much of a sample is read again each time, the smallest files first: of what is larger, the sizes are looked at."""

MOST_FILES = 10_000
"""Of more than these, a sample says nothing: a submission's set-up may leave any number."""

Facts = list[Any]
"""Kind, mode or target, and of a file its size and its time."""


def write_manifest(folder: Path, kept: Path | None = None) -> None:
    """All that is in it, for what decides verdicts. Kept in it, or in the file `kept` elsewhere."""
    known = {name: [facts, _digest(folder / name) if facts[0] == "file" else None] for name, facts in _found(folder)}
    (kept or folder / MANIFEST).write_text(_with_digest(json.dumps(known)))


def check_manifest(folder: Path, kept: Path | None = None, *, reread: bool = True) -> None:
    """Raises ValueError or OSError for a folder in which anything is changed, gone or new, or that was never sealed.

    Without `reread`, a file that has its size and its time is taken for what it was.
    Bytecode that was compiled later is as new as anything else, and Python would believe it: it is thrown away.
    """
    known, found = _read(kept or folder / MANIFEST), dict(_found(folder))
    for name in found.keys() - known.keys():
        place = os.path.basename(os.path.dirname(name))
        if place == COMPILED and name.endswith(".pyc"):
            (folder / name).unlink(missing_ok=True)
        elif place != COMPILED and (os.path.basename(name), found[name][0]) != (COMPILED, "folder"):
            raise ValueError(f"{name} is new")
    for name, (facts, digest) in known.items():
        now = found.get(name)
        if now is None or now[:3] != facts[:3]:
            raise ValueError(f"{name} is damaged")
        if digest is not None and (reread or now != facts) and _digest(folder / name) != digest:
            raise ValueError(f"{name} is damaged")


def write_sample_manifest(folder: Path) -> None:
    """Of a folder that its submission filled, and may fill as it likes: what comes later is not looked at."""
    files, read = sorted(itertools.islice(_files(folder), MOST_FILES)), 0
    known: dict[str, tuple[int, str | None]] = {}
    for number, (size, name) in enumerate(files):
        read += size
        with contextlib.suppress(OSError):  # what this user cannot read, no submission of his can
            known[name] = (size, _digest(folder / name) if number < MOST_READ and read <= MOST_BYTES else None)
    (folder / MANIFEST).write_text(_with_digest(json.dumps(known)))


def check_sample_manifest(folder: Path) -> None:
    """Raises ValueError or OSError for a folder that was changed, as far as it is looked at, or never sealed."""
    for name, (size, digest) in _read(folder / MANIFEST).items():
        path = folder / name
        status = os.lstat(path)
        same = stat.S_ISREG(status.st_mode) and status.st_size == size
        if not same or (digest is not None and _digest(path) != digest):
            raise ValueError(f"{name} is damaged")


def _found(folder: Path) -> Iterator[tuple[str, Facts]]:
    """By their paths; the seal itself is left out."""
    places = [""]
    while places:
        place = places.pop()
        with os.scandir(folder / place) as entries:
            for entry in entries:
                name = f"{place}{entry.name}"
                if name == MANIFEST:
                    continue
                facts = _facts(entry)
                if facts[0] == "folder":
                    places.append(f"{name}/")
                yield name, facts


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


def _facts(entry: os.DirEntry[str]) -> Facts:
    status = entry.stat(follow_symlinks=False)
    kind, mode = stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode)
    if kind == stat.S_IFREG:
        return ["file", mode, status.st_size, status.st_mtime_ns]
    if kind == stat.S_IFLNK:
        return ["link", os.readlink(entry.path)]
    return ["folder" if kind == stat.S_IFDIR else "other", mode]


def _digest(path: Path) -> str:
    with path.open("rb", buffering=0) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _read(path: Path) -> dict[str, Any]:
    text = path.read_text()
    content = text.partition("\n")[2]
    if _with_digest(content) != text:
        raise ValueError("the manifest is damaged")
    known: dict[str, Any] = json.loads(content)
    return known


def _with_digest(text: str) -> str:
    return f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}"
