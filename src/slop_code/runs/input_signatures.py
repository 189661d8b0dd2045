"""Digests of the inputs of a run, kept beside its index with the signatures of their files.

A folder is read again only if anything in it changed. Its signature has names, inodes, sizes and times of all files.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import time
from typing import TYPE_CHECKING, Any, Self, TypeVar

from slop_code._io import TooLargeError, json_object, open_atomic, open_regular
from slop_code._version import __version__
from slop_code.evaluation.result_files.staleness import evaluation_version
from slop_code.execution.trees.file_signatures import SETTLED_NS, signature_of
from slop_code.runs.folders.run_lock import STATE_DIR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

SIGNATURES_FILE = "inputs"
FORMAT = 1
"""Increased with every change of how digests of inputs are computed."""

MAX_ENTRIES = 100_000
"""Files and folders of an input; the digest of a larger one is always computed."""

MAX_FILE_BYTES = 64 << 20
"""Of the file; a larger one is not read."""

MAX_FOLDERS = 100_000
"""Inputs whose digests are kept in memory."""

Digest = TypeVar("Digest", str, dict[str, list[str]])


class UnknownSignatureError(Exception):
    """The content does not follow from a signature: there is a link in it, or it is large, or cannot be read."""


class InputSignatures:
    """Digests of folders by their paths. Those of a changed folder are computed again."""

    def __init__(self, folder: Path | None) -> None:
        """`folder` is that of the run, or None if digests are kept in memory only."""
        self._file = folder / STATE_DIR / SIGNATURES_FILE if folder else None
        self._known: dict[str, tuple[str, Any]] = {}
        self._changed = False

    @classmethod
    def load(cls, folder: Path | None) -> Self:
        """A file that is damaged or of another version, or that others may write, is ignored."""
        signatures = cls(folder)
        try:
            raw = _read_own(signatures._file) if signatures._file else b""
        except (OSError, TooLargeError):
            return signatures
        header, _, text = raw.partition(b"\n")
        if header == _header(text):
            entries = json_object(text).items()
            signatures._known = {name: (known[0], known[1]) for name, known in entries if _is_entry(name, known)}
        return signatures

    def digest(
        self, key: str, folders: Iterable[Path], compute: Callable[[], Digest], *, links: bool = False
    ) -> Digest:
        """`key` is what else the digest depends on, beside the content of these folders or files.

        With `links`, links may be in a folder, as the digest has their targets, and nothing that they lead to.
        """
        paths: list[str] = [str(folder) for folder in folders]
        began = time.time_ns()
        try:
            signature, latest = _signature(paths, links=links)
        except (OSError, UnknownSignatureError):
            return compute()
        name = "\0".join([key, *paths])
        known = self._known.get(name)
        if known is not None and known[0] == signature:
            digest: Digest = known[1]
            return digest
        digest = compute()
        # A file that changed a moment ago could change again without a new time.
        if latest < began - SETTLED_NS and self._is_still(paths, signature, links=links):
            if len(self._known) >= MAX_FOLDERS:
                self._known.clear()
            self._known[name] = (signature, digest)
            self._changed = True
        return digest

    def _is_still(self, paths: list[str], signature: str, *, links: bool) -> bool:
        try:
            return _signature(paths, links=links)[0] == signature
        except (OSError, UnknownSignatureError):
            return False

    def save(self) -> None:
        """Write what is known of folders that exist. A link in the place of the folder of the index is not followed."""
        if self._file is None or not self._changed or self._file.parent.is_symlink():
            return
        kept = {name: known for name, known in self._known.items() if os.path.lexists(name.split("\0")[1])}
        text = json.dumps(kept, separators=(",", ":")).encode()
        with open_atomic(self._file) as stream:
            os.fchmod(stream.fileno(), 0o600)
            stream.write(_header(text) + b"\n" + text)
        self._changed = False


def _read_own(file: Path) -> bytes:
    """Whoever may write this file decides which result of the cache a folder has."""
    with open_regular(file) as stream:
        status = os.fstat(stream.fileno())
        if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise PermissionError(errno.EACCES, "others may write it", str(file))
        data = stream.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise TooLargeError
    return data


def _is_entry(name: str, known: Any) -> bool:
    """A right header alone does not make an entry well formed. Without a key there is one digest, else several."""
    if "\0" not in name or not isinstance(known, list) or len(known) != 2 or not isinstance(known[0], str):
        return False
    if name.startswith("\0"):
        return isinstance(known[1], str)
    return isinstance(known[1], dict) and all(_is_pair(digests) for digests in known[1].values())


def _is_pair(digests: Any) -> bool:
    return isinstance(digests, list) and len(digests) == 2 and all(isinstance(digest, str) for digest in digests)


def _header(text: bytes) -> bytes:
    """Of a file with this content, by this version: a damaged or edited file has another one."""
    return f"{__version__} {FORMAT} {evaluation_version()} {hashlib.sha256(text).hexdigest()}".encode()


def _signature(paths: list[str], *, links: bool) -> tuple[str, int]:
    """The digest of all signatures and of the user, who may not be able to read all; the time of the latest change."""
    digest, latest, count = hashlib.sha256(repr((os.geteuid(), os.getgroups())).encode()), 0, 0
    waiting = [(path, os.lstat(path)) for path in reversed(paths)]
    if any(stat.S_ISLNK(status.st_mode) for _, status in waiting):
        raise UnknownSignatureError
    while waiting:
        path, status = waiting.pop()
        count += 1
        if count > MAX_ENTRIES or (stat.S_ISLNK(status.st_mode) and not links):
            raise UnknownSignatureError
        signature = signature_of(status)
        digest.update(f"{signature}{path}\0".encode("utf-8", "surrogateescape"))
        latest = max(latest, *signature[-2:])
        if stat.S_ISDIR(status.st_mode):
            with os.scandir(path) as entries:
                inner = sorted((entry.path, entry.stat(follow_symlinks=False)) for entry in entries)
            waiting += reversed(inner)
    return digest.hexdigest(), latest
