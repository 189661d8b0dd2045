"""Checksum manifests of cache entries and of uv's cache: an entry that differs is damaged, and is built again."""

from __future__ import annotations

import base64
import contextlib
import csv
import hashlib
import itertools
import json
import logging
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slop_code.execution.cache import DAMAGE_ERRORS, Cache, file_lock, remove_whole
from slop_code.execution.trees.file_signatures import Signature, SignatureCache, signature_of

if TYPE_CHECKING:
    from collections.abc import Iterator

logger = logging.getLogger(__name__)

MANIFEST = ".manifest"
BYTECODE_FOLDER = "__pycache__"
MAX_DIGESTS = 300
MAX_DIGEST_BYTES = 8 << 20
"""Files and bytes of a sample that each check reads, the smallest files first; of the other files it compares sizes."""

MAX_FILES = 10_000
"""Files of a sample, since a submission's set-up may leave any number of files."""

ARCHIVES = "archive-v0"
"""uv's folder of unpacked wheels, and of the environments that uvx makes of them."""

INSTALLED = "installed"
"""Folder of the manifests of these environments."""

Facts = list[Any]
"""Kind, then mode or link target; of a file also its size and modification time."""

_verified = SignatureCache[bool]()
"""Folders that this process has compared with their manifests."""


def write_manifest(folder: Path, manifest: Path | None = None) -> None:
    """Record every file of a folder that decides verdicts; by default the manifest lies in the folder."""
    recorded = {
        name: [facts, _digest(folder / name) if facts[0] == "file" else None] for name, facts in _all_facts(folder, {})
    }
    (manifest or folder / MANIFEST).write_text(_with_digest(json.dumps(recorded)))


def check_manifest(folder: Path, manifest: Path | None = None, *, reread: bool = True) -> None:
    """Raise ValueError or OSError if anything is changed, missing or new, or if there is no manifest.

    Without `reread`, a file with the recorded size and time counts as unchanged.
    Bytecode that was compiled later is removed: Python would trust it like any other file.
    A folder that passed is not read again while the signatures of all its files and folders, and of the manifest, are
    the same. That is as strict as reading: nobody writes to a file, or adds and removes names, without changing them.
    """
    manifest = manifest or folder / MANIFEST
    key = (folder, manifest, reread)
    if _verified.get(key):
        return
    signatures = {str(path): signature_of(os.lstat(path)) for path in (manifest, folder)}
    _compare(folder, _read(manifest), dict(_all_facts(folder, signatures)), reread=reread)
    _verified.put(key, signatures, True)


def _compare(folder: Path, recorded: dict[str, Any], present: dict[str, Facts], *, reread: bool) -> None:
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


def _all_facts(folder: Path, signatures: dict[str, Signature]) -> Iterator[tuple[str, Facts]]:
    """Everything in the folder by its relative path, without the manifest itself; adds to `signatures`, by full path.

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
                signatures[entry.path] = signature_of(entry.stat(follow_symlinks=False))
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


@contextlib.contextmanager
def damage_removed(cache: Cache) -> Iterator[None]:
    """Nothing damaged is in uv's cache when the block begins, and no other evaluator installs meanwhile."""
    with file_lock(cache.root / ".installed.lock"):
        remove_damaged(cache)
        yield


def record_installed(cache: Cache, environment: Path) -> str | None:
    """The name of an environment for `check_installed`; None for an environment elsewhere, as in a container."""
    if environment.parent != cache.uv / ARCHIVES:
        return None
    if not _is_undamaged(cache, environment.name):
        (cache.uv / INSTALLED).mkdir(exist_ok=True)
        write_manifest(environment, cache.uv / INSTALLED / environment.name)
    return environment.name


def check_installed(cache: Cache, name: str) -> None:
    """Raise ValueError or OSError unless the environment has exactly the files that were recorded.

    Sizes, times and modes are compared, not contents: for thousands of files that takes a hundredth of a second.
    """
    check_manifest(cache.uv / ARCHIVES / name, cache.uv / INSTALLED / name, reread=False)


def remove_damaged(cache: Cache) -> None:
    """Remove every folder that is neither a wheel that equals its RECORD nor an environment that equals its manifest.

    A kill can leave anything half made or half removed, and uv would use it as it is. So a folder counts as damaged
    unless it is proven whole, and it is moved away before its files are removed.
    """
    for folder in sorted((cache.uv / ARCHIVES).glob("*/")):
        if not (matches_record(folder) or _is_undamaged(cache, folder.name)):
            logger.info("removing a damaged folder of uv's cache: %s", folder)
            remove_whole(folder, cache.uv)
            (cache.uv / INSTALLED / folder.name).unlink(missing_ok=True)


def _is_undamaged(cache: Cache, name: str) -> bool:
    """An environment without a manifest is of a killed builder, and counts as damaged."""
    try:
        check_installed(cache, name)
    except DAMAGE_ERRORS:
        return False
    return True


def matches_record(wheel: Path) -> bool:
    """Whether a folder is an unpacked wheel that has the files of its RECORD, with their digests, and no others."""
    records = list(wheel.glob("*.dist-info/RECORD"))
    unrecorded = {path for path in wheel.rglob("*") if not path.is_dir()} if records else {wheel}
    try:
        for record in records:
            unrecorded.discard(record)
            for name, digest, *_ in csv.reader(record.read_text().splitlines()):
                path = Path(os.path.normpath(wheel / name))
                if digest and _wheel_digest(path, digest.partition("=")[0]) != digest:
                    return False
                unrecorded.discard(path)
    except DAMAGE_ERRORS:
        return False
    return not unrecorded


def _wheel_digest(path: Path, algorithm: str) -> str:
    digest = hashlib.new(algorithm, path.read_bytes()).digest()
    return f"{algorithm}={base64.urlsafe_b64encode(digest).decode().rstrip('=')}"
