"""Atomic writes, folders that appear as a whole, bounded reads, digests, and streams whose reader may be gone."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import secrets
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from slop_code.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator


class TooLargeError(ValueError):
    """A file is larger than the limit of its reader."""


def write_atomic(path: Path, data: str | bytes) -> None:
    with open_atomic(path) as stream:
        stream.write(data.encode("utf-8") if isinstance(data, str) else data)


@contextlib.contextmanager
def open_atomic(path: Path) -> Iterator[BinaryIO]:
    """Write to a temporary file and rename it, so that a file that exists is complete. Errors name the target."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, os.fspath(temporary)):
            error.filename, error.filename2 = os.fspath(path), None
        raise


def write_new(path: Path, data: bytes) -> None:
    """Write a file that does not exist yet; it is on the disk when this returns."""
    with path.open("xb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def sync_folder(path: Path) -> None:
    """Write the names in a folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Yields a folder to fill; at the end it becomes `target`, or is removed after an error. Errors name `target`."""
    path = Path(os.path.abspath(target))
    scratch = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch.mkdir()
        yield scratch
        for folder, *_ in os.walk(scratch):
            sync_folder(Path(folder))
        os.rename(scratch, path)  # replaces an empty folder only
        sync_folder(path.parent)
    except OSError as error:
        if error.filename is None or Path(error.filename).is_relative_to(scratch):
            error.filename, error.filename2 = os.fspath(target), None
        raise
    finally:
        if os.path.lexists(scratch):
            shutil.rmtree(scratch, ignore_errors=True)


def check_new_folder(target: Path, option: str) -> None:
    """Raises UsageError where `new_folder` would replace something. `option`: the one that names the folder."""
    step = f"give a new or an empty folder with {option}"
    if os.path.lexists(target) and (target.is_symlink() or not target.is_dir()):
        raise UsageError(f"{target}: not a folder; {step}")
    if target.is_dir() and any(target.iterdir()):
        raise UsageError(f"{target}: not empty, and nothing is replaced; {step}")


def read_bounded(path: Path, limit: int) -> bytes:
    """The content of a regular file of at most `limit` bytes; links are not followed."""
    with open_regular(path) as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise TooLargeError(f"{path.name} is larger than {limit} bytes")
    return data


def read_or_none(path: Path, limit: int) -> bytes | None:
    """As `read_bounded`; None where there is no such file, or it cannot be read."""
    try:
        return read_bounded(path, limit)
    except (OSError, TooLargeError):
        return None


def json_object(data: bytes | None) -> dict[str, Any]:
    """The object in a JSON text; empty where there is none."""
    if not data:
        return {}
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading without following a link or waiting for a pipe."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(descriptor, "rb")


def tail(path: Path, limit: int) -> str:
    """The end of a regular text file, for a person to read; empty when the file cannot be read."""
    try:
        with open_regular(path) as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - limit))
            return stream.read(limit).decode("utf-8", "replace")
    except OSError:
        return ""


def digest_of(value: Any) -> str:
    """SHA-256 of a JSON value in its canonical form."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def keep_ends(path: Path, limit: int) -> None:
    """Cut the middle out of a file that has grown beyond `limit` bytes."""
    if not path.is_file() or path.stat().st_size <= limit:
        return
    half = limit // 2
    with path.open("r+b") as stream:
        stream.seek(-half, os.SEEK_END)
        end = stream.read(half)
        stream.seek(half)
        stream.write(b"\n[... cut here ...]\n" + end)
        stream.truncate()


_WRITE_ERRORS = (OSError, ValueError)
"""The reader is gone or the disk full; the stream is closed."""


class BestEffortStream:
    """A stream whose errors are ignored: work goes on when nobody reads its messages."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with contextlib.suppress(*_WRITE_ERRORS):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(*_WRITE_ERRORS):
            self._stream.flush()


def os_error_text(error: OSError, location: object) -> str:
    """Location, fact and next step. `location` is used where the error names none."""
    steps = {
        errno.EACCES: "; give this user access to it",
        errno.ENOSPC: "; the disk is full: free space there",
        errno.EDQUOT: "; the quota of the disk is used up: free space there",
        errno.EROFS: "; choose a folder that you can write to",
    }
    return f"{error.filename or location}: {error.strerror}{steps.get(error.errno or 0, '')}"


def unreadable_text(error: OSError, location: object) -> str:
    """Location, fact and next step about a file or folder that cannot be read."""
    step = "; let this user read it" if isinstance(error, PermissionError) else ""
    return f"{error.filename or location}: cannot be read: {error.strerror}{step}"
