"""Checksum manifests of cache entries: a folder that differs from its manifest is damaged, and built again."""

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
BYTECODE_FOLDER = "__pycache__"
MAX_DIGESTS = 300
MAX_DIGEST_BYTES = 8 << 20
"""Of a sample, these many files and bytes are read at each check, the smallest files first; of the rest the sizes."""

MAX_FILES = 10_000
"""A sample covers no more files than these, since a submission's set-up may leave any number."""

Facts = list[Any]
"""Kind, then mode or link target; of a file also its size and modification time."""


def write_manifest(folder: Path, manifest: Path | None = None) -> None:
    """Record every file of a folder that decides verdicts; by default the manifest lies in the folder."""
    recorded = {
        name: [facts, _digest(folder / name) if facts[0] == "file" else None] for name, facts in _all_facts(folder)
    }
    (manifest or folder / MANIFEST).write_text(_with_digest(json.dumps(recorded)))


def check_manifest(folder: Path, manifest: Path | None = None, *, reread: bool = True) -> None:
    """Raise ValueError or OSError if anything is changed, missing or new, or if there is no manifest.

    Without `reread`, a file with the recorded size and time counts as unchanged.
    Bytecode that was compiled later is removed: Python would trust it like any other file.
    """
    recorded, present = _read(manifest or folder / MANIFEST), dict(_all_facts(folder))
    for name in present.keys() - recorded.keys():
        parent = os.path.basename(os.path.dirname(name))
        if parent == BYTECODE_FOLDER and name.endswith(".pyc"):
            (folder / name).unlink(missing_ok=True)
        elif parent != BYTECODE_FOLDER and (os.path.basename(name), present[name][0]) != (BYTECODE_FOLDER, "folder"):
            raise ValueError(f"{name} is new")
    for name, (facts, digest) in recorded.items():
        now = present.get(name)
        if now is None or now[:3] != facts[:3]:
            raise ValueError(f"{name} is damaged")
        if digest is not None and (reread or now != facts) and _digest(folder / name) != digest:
            raise ValueError(f"{name} is damaged")


def write_sample_manifest(folder: Path) -> None:
    """Record a part of a folder that its submission filled; files that are added later are ignored."""
    files, read = sorted(itertools.islice(_files(folder), MAX_FILES)), 0
    recorded: dict[str, tuple[int, str | None]] = {}
    for number, (size, name) in enumerate(files):
        read += size
        with contextlib.suppress(OSError):  # a file that this user cannot read is useless to the submission too
            digest = _digest(folder / name) if number < MAX_DIGESTS and read <= MAX_DIGEST_BYTES else None
            recorded[name] = (size, digest)
    (folder / MANIFEST).write_text(_with_digest(json.dumps(recorded)))


def check_sample_manifest(folder: Path) -> None:
    """Raise ValueError or OSError if a recorded file is changed or missing, or if there is no manifest."""
    for name, (size, digest) in _read(folder / MANIFEST).items():
        path = folder / name
        status = os.lstat(path)
        same = stat.S_ISREG(status.st_mode) and status.st_size == size
        if not same or (digest is not None and _digest(path) != digest):
            raise ValueError(f"{name} is damaged")


def _all_facts(folder: Path) -> Iterator[tuple[str, Facts]]:
    """Everything in the folder by its relative path, without the manifest itself.

    Another evaluator may remove bytecode meanwhile, so an entry that is gone when it is looked at is left out.
    """
    prefixes = [""]
    while prefixes:
        prefix = prefixes.pop()
        with os.scandir(folder / prefix) as entries:
            for entry in entries:
                name = f"{prefix}{entry.name}"
                if name == MANIFEST:
                    continue
                try:
                    facts = _facts(entry)
                except FileNotFoundError:
                    continue
                if facts[0] == "folder":
                    prefixes.append(f"{name}/")
                yield name, facts


def _files(folder: Path) -> Iterator[tuple[int, str]]:
    """Sizes and relative paths of the files that can be reached."""
    folders = [os.fspath(folder)]
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
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
    recorded: dict[str, Any] = json.loads(content)
    return recorded


def _with_digest(text: str) -> str:
    return f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}"
