"""Files of a submission, which may be of any kind, size and content."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from slop_code._io import TooLargeError, read_bounded
from slop_code.execution.dependencies.file_parsers import parse_toml
from slop_code.execution.dependencies.lock_files import LOCKS

MAX_FILE_BYTES = 1 << 20
MAX_LOCK_BYTES = 8 << 20
MAX_PATH = 4096
"""Characters of a path, as Linux limits its bytes."""


def has_file(submission: Path, name: str) -> bool:
    return _file(submission, name) is not None


def read_text(submission: Path, name: str) -> str | None:
    """The content of a file, or None if it is absent, not text, or too large."""
    if (path := _file(submission, name)) is None:
        return None
    try:
        return read_bounded(path, MAX_LOCK_BYTES if name in LOCKS else MAX_FILE_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError, TooLargeError):
        return None


def read_toml(submission: Path, name: str) -> dict[str, Any] | None:
    """The content of a file, or None if it is absent or cannot be parsed."""
    text = read_text(submission, name)
    return None if text is None else parse_toml(text)


def _file(submission: Path, name: str) -> Path | None:
    """A file of the submission, or None if it is absent, or a pipe or a link that leads out, which uv must not read.

    Any name is possible, as a setup.cfg names files. No error may escape: it would replace the verdict.
    """
    if len(name) > MAX_PATH:
        return None  # it cannot exist, and `realpath` would take time with the square of its length
    try:
        if not os.path.lexists(os.path.join(submission, name)):  # as a rule, and much quicker than `realpath`
            return None
        path = Path(os.path.realpath(submission / name))
    except ValueError:  # a null character, or one that no file name can have
        return None
    return path if submission in path.parents and os.path.isfile(path) else None
